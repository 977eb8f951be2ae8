// The table of bad input: runs and models that are damaged or no models at all.
#include "bad_input.h"

TEST_CASE("runs and models that are damaged or no models at all, code 1") {
  const auto anew = [](const std::string& run, const std::string& file, const std::string& fault) {
    return run + "/" + file + ": " + fault + "; write it anew with: pellucid train --resume " + run;
  };
  const std::string copy = "; restore it from a copy, or train again in a new folder";
  const std::string none = "none: no such folder; give the one that --out named";
  const std::string file = "text.txt: is a file, not a run's folder; give the one that --out named";
  const std::string hollow =
      "hollow: holds no run (neither state.safetensors nor config.json); begin one by --out";
  const auto sample = [](const std::string& model, const std::string& message) {
    return Row{words("sample --tokens 3 --tokenizer bytes/tokenizer.json --model " + model),
               message};
  };
  const std::string cut = anew("cut_model", "model.safetensors",
                               "holds 3824 bytes of data, but its header describes 101888: it was "
                               "cut short, or something was added");
  const std::string nan =
      anew("nan_model", "model.safetensors", "wte.weight holds a number that is not finite");
  tell(
      "runs and models",
      check(
          1,
          {{words("train --resume none"), none},
           {words("train --resume text.txt"), file},
           {words("train --resume hollow"), hollow},
           {words("train --resume run --data bytes/config.json"),
            "bytes/config.json: is not the text that the run began with (4000 bytes then, 1129 "
            "now, or other contents); give that one by --data"},
           {words("train --resume changed"),
            "old.txt: is not the text that the run began with (4000 bytes then, 4000 now, or other "
            "contents); give that one by --data"},
           {words("train --resume cut_state"),
            "cut_state/state.safetensors: holds 44584 bytes of data, but its header describes "
            "305672: it was cut short, or something was added" +
                copy},
           {words("train --resume no_state"),
            "no_state/state.safetensors: is missing, and without it no run goes on" + copy},
           {words("sample --model none"), none},
           {words("sample --model no_config"), anew("no_config", "config.json", "is missing")},
           {words("sample --model bad_config"),
            anew("bad_config", "config.json", "is damaged: this is not JSON")},
           {words("sample --model twice_config"),
            anew("twice_config", "config.json", twice("format"))},
           {words("sample --model twice_tokens"),
            anew("twice_tokens", "tokenizer.json", twice("type"))},
           {words("train --resume twice_state"),
            "twice_state/state.safetensors: " + twice("seconds") + copy},
           {words("sample --model bad_tokens"),
            anew(
                "bad_tokens", "tokenizer.json",
                "tokenizer: wanted \"type\": \"char\", \"byte\", \"bpe\" or \"llama2\"; got null")},
           {words("eval --data text.txt --model other_tokens"),
            anew("other_tokens", "tokenizer.json",
                 "has 256 tokens, but the model of config.json has 23")},
           {words("eval --data text.txt --model no_model"),
            anew("no_model", "model.safetensors", "is no safetensors file: shorter than 8 bytes")},
           {words("sample --model cut_model"), cut},
           {words("inspect cut_model"), cut},
           {words("report cut_model"), cut},
           {words("sample --model nan_model"), nan},
           {words("eval --data text.txt --model nan_model"), nan},
           {words("inspect nan_model"), nan},
           {words("eval --model text.txt --data text.txt"),
            "text.txt: is a file: give the folder of a run, or the file's tokenizer by --tokenizer "
            "FILE"},
           {words("eval --model run --tokenizer text.txt --data text.txt"),
            "run: a run has its own tokenizer; leave --tokenizer out"},
           {words("inspect hollow"), hollow},
           {words("report none"), none},
           {words("inspect run --data none"), "none: no such file; give the path of a text file"},
           {words("report run --text Z"),
            "the text: encode: 'Z' at position 0 is not among the 23 characters that the model was "
            "trained on; use characters of the training text only"},
           {words("sample --model run --prompt Z"),
            "the prompt: encode: 'Z' at position 0 is not among the 23 characters that the model "
            "was "
            "trained on; use characters of that text only"},
           {{"sample", "--model", "run", "--prompt", ""},
            "sample: the prompt is empty; give at least one character"},
           {words("eval --model run --data empty"), "empty: is empty; give a text file"},
           {words("eval --model run --data hollow"),
            "hollow: holds no files; give a folder of text files"},
           {words("eval --model run --data binary"),
            "binary: looks binary (byte 0 at position 4); give a plain text file"},
           {words("eval --model run --tasks gold.jsonl"),
            "gold.jsonl:1: gold must be a whole number from 0 to 1; got 2; mend the line or take "
            "it out"},
           {words("eval --model run --tasks extra.jsonl"),
            "extra.jsonl:2: unknown key \"label\"; an item of this kind has: query, choices, gold; "
            "mend the line or take it out"},
           {words("eval --model run --tasks twice.jsonl"),
            "twice.jsonl:2: " + twice("gold") + "; mend the line or take it out"},
           {words("eval --model run --tasks both.jsonl"),
            "both.jsonl:1: unknown key \"gold\"; an item of this kind has: context, continuation; "
            "mend the line or take it out"},
           {words("eval --model run --tasks cut.jsonl"),
            "cut.jsonl:1: this is not JSON; mend the line or take it out"},
           {words("eval --model run --tasks binary"),
            "binary:1: this is not JSON; mend the line or take it out"},
           {words("eval --model run --tasks empty"),
            "empty: holds no items; give a file of JSON lines"},
           {words("eval --model run --tasks foreign.jsonl"),
            "foreign.jsonl:1: encode: 'Z' at position 4 is not among the 23 characters that the "
            "model "
            "was trained on; take the line out, or another model"},
           {words("sample --model llama.bin"),
            "llama.bin: is a file: give the folder of a run, or the file's tokenizer by "
            "--tokenizer "
            "FILE"},
           {words("sample --model llama.bin --tokenizer run/tokenizer.json"),
            "run/tokenizer.json: has 23 tokens, but the model llama.bin has 256; give the "
            "tokenizer "
            "that it was trained with"},
           sample("run", "run: a run has its own tokenizer; leave --tokenizer out"),
           sample("empty",
                  "empty: has 0 bytes, fewer than the header of a llama2.c model; get it again"),
           sample("cut.bin",
                  "cut.bin: has 18552 bytes, but a llama2.c model with its header's sizes (dim 12, "
                  "hidden 10, layers 2, heads 3, key heads 1, vocabulary 256, context 9) has "
                  "18652; get it again"),
           sample("minus.bin",
                  "minus.bin: is no llama2.c model of version 0: by its header, GPT config: n_embd "
                  "must "
                  "be from 1 to 65536; got -12"),
           sample("nan.bin", "nan.bin: wte.weight holds a number that is not finite; get it again"),
           sample("half.safetensors",
                  "half.safetensors: has no matrix wpe.weight: it is no GPT-2; give the "
                  "model.safetensors of one"),
           sample(
               "cut.safetensors",
               "cut.safetensors: holds 326 bytes of data, but its header describes 336: it was cut "
               "short, or something was added; get it again")}));
}
