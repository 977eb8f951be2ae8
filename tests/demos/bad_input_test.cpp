// The table of bad input: command lines, settings, texts and places.
#include "bad_input.h"

#include "tutorials/demos/step_memory.h"

TEST_CASE("bad input: command lines, code 2") {
  const auto line = [](const std::string& arguments, const std::string& message) {
    const Words all = words(arguments);
    const bool known = all[0][0] != '-' && all[0] != "tain";
    return Row{all, message + "; see pellucid " + (known ? all[0] + " " : "") + "--help"};
  };
  const std::string train = "train --data text.txt --preset tiny --out new ";
  const std::string commands =
      "there are: train, sample, eval, demo, inspect, report, doctor, bench, grade, test";
  const std::string seeds = "--seed: wanted a whole number from 0 to 18446744073709551615; got ";
  std::vector<Row> rows = {
      line("tain", "no command \"tain\"; " + commands),
      line("--steps 3", "wanted a command; got \"--steps\"; " + commands),
      line("train", "train: needs --data and --preset and --out (or --resume alone)"),
      line("train --data text.txt --preset tiny", "train: needs --out (or --resume alone)"),
      line("train --data", "--data: 1 required value missing"),
      line(train + "--preset demo", "--preset: wanted once; got 2"),
      line(train + "--report=3", "--report takes no value"),
      line(train + "--config mine.json", "--preset excludes --config"),
      line("train --resume run --set lr=3", "--set excludes --resume"),
      line("train --data text.txt --out new --preset huge",
           "no preset is called \"huge\"; there are: tiny, demo, names, shakespeare, stories, "
           "gpt2-small-shape"),
      line("train --data text.txt --out new --preset shakespear",
           "no preset is called \"shakespear\"; did you mean shakespeare? there are: tiny, demo, "
           "names, shakespeare, stories, gpt2-small-shape"),
      line(train + "--steps 0",
           "--steps: wanted a whole number from 1 to 1099511627776; got \"0\""),
      line(train + "--minutes nan", "--minutes: wanted a number from 0.05 to 1e+06; got \"nan\""),
      line(train + "--minutes 1e300",
           "--minutes: wanted a number from 0.05 to 1e+06; got \"1e300\""),
      line(train + "--minutes 1 --steps 2", "--steps excludes --minutes"),
      line(train + "--seed -1", seeds + "\"-1\""),
      line(train + "--attention linear", "--attention: wanted xsa or sa; got \"linear\""),
      line(train + "--documents pages",
           "--documents: wanted text or files or lines; got \"pages\""),
      line(train + "--documents lines --separator x", "--documents excludes --separator"),
      line(train + "--vocab-size 300", "--vocab-size: needs --tokenizer bpe"),
      line(train + "--tokenizer bpe --vocab-size 99999999999",
           "--vocab-size: wanted a whole number from 257 to 16777216; got \"99999999999\""),
      line(train + "--threads 100000",
           "--threads: wanted a whole number from 1 to 1024; got \"100000\""),
      line(train + "--set lr", "--set lr: wanted key=value, such as n_layer=4"),
      line(train + "--set lr=nan", "--set: TrainConfig: lr must be a number; got \"nan\""),
      line(train + "--set lr=1e999", "--set: TrainConfig: lr must be a number; got \"1e999\""),
      line(train + "--set n_layer=1000000",
           "--set: GPT config: n_layer must be from 1 to 1000; got 1000000"),
      line(train + "--set batch_size=-1",
           "--set: TrainConfig: batch_size must be at least 1; got -1"),
      line(train + "--set batch_size=9999999999",
           "--set: TrainConfig: batch_size must be at most 2147483648; got 9999999999"),
      line(train + "--set dropout=1", "--set: GPT config: dropout must be in [0, 1); got 1"),
      line(train + "--set n_embd=33",
           "--set: GPT config: n_embd must be a multiple of n_head; got n_embd 33, n_head 2"),
      line(train + "--set nolayer=3",
           "--set nolayer=3: unknown key \"nolayer\"; the nearest are n_layer, xsa_layers, "
           "norm_eps"),
      line("sample", "--model is required"),
      line("sample --model run --model bytes", "--model: wanted once; got 2"),
      line("sample --model run --temperature nan",
           "--temperature: wanted a number from 0 to 1e+06; got \"nan\""),
      line("sample --model run --top-p 0", "--top-p: wanted a number from 1e-06 to 1; got \"0\""),
      line("sample --model run --tokens 99999999999999999999",
           "--tokens: wanted a whole number from 0 to 1099511627776; got "
           "\"99999999999999999999\""),
      line("sample --model run --interactive --prompt x", "--prompt excludes --interactive"),
      line("sample --model run --interactive --samples 2", "--samples excludes --interactive"),
      line("sample --model run --samples 0",
           "--samples: wanted a whole number from 1 to 1099511627776; got \"0\""),
      line("sample --model run --interactive=5", "--interactive takes no value"),
      line("eval --model run", "eval: needs --data or --tasks"),
      line("eval --model run --ngram", "--ngram requires --data"),
      line("inspect", "folder is required"),
      line("inspect run --data text.txt --text a", "--data excludes --text"),
      line("report run bytes", "not expected: bytes"),
      line("grade --hint", "--hint requires exercise"),
      line("grade --seed 3", "--seed requires exercise"),
      line("grade 01-tensors --watch --hint", "--watch excludes --hint"),
      line("grade 01-tensors --seed x", seeds + "\"x\""),
      line("demo --minutes -1", "--minutes: wanted a number from 0.05 to 10000; got \"-1\""),
      line("demo --seed 1.5", seeds + "\"1.5\""),
      line("bench --quick=7", "--quick takes no value"),
      line("bench extra", "not expected: extra"),
      line("doctor --threads -1", "--threads: wanted a whole number from 1 to 1024; got \"-1\"")};
  rows.push_back(
      {{"report", "run", "--text", ""}, "--text: the value is empty; see pellucid report --help"});
  rows.push_back({{"grade", ""}, "exercise: the value is empty; see pellucid grade --help"});
  tell("command lines", check(2, rows));
}

TEST_CASE("bad input: texts, settings, tokenizers and places, code 1") {
  const auto train = [](const std::string& more, const std::string& message) {
    return Row{words("train --out new " + more), message};
  };
  const std::string tiny = "--preset tiny --data ", config = "--data text.txt --config ";
  const std::string json = "is not JSON, as line ",
                    form = " shows; give a file in the form of a preset";
  const std::string few =
      "text.txt: has 1 document, too few: one is for training and one for "
      "validation; give more, or read it as one text by --documents text";
  tell(
      "texts, settings, places",
      check(
          1,
          {train(tiny + "none.txt", "none.txt: no such file; give the path of a text file"),
           train(tiny + "empty", "empty: is empty; give a text file"),
           train(tiny + "hollow", "hollow: holds no files; give a folder of text files"),
           train(tiny + "binary",
                 "binary: looks binary (byte 0 at position 4); give a plain text file"),
           train(tiny + "/dev/zero", "/dev/zero: is no ordinary file; give a text file"),
           train(
               tiny + "three",
               "three: has 3 characters, too few: 90 % are for training and must be more than the "
               "context of 32, 10 % for validation; give a text of at least 36 characters"),
           train(tiny + "text.txt --documents files", few),
           train(tiny + "blank --documents lines",
                 "blank: has 0 documents, too few: one is for training and one for validation; "
                 "give more, or read it as one text by --documents text"),
           train(tiny + "text.txt --separator qqq", few),
           train(config + "none.json",
                 "none.json: cannot be opened: No such file or directory; check the path"),
           train(config + "hollow", "hollow: is a folder; wanted a file"),
           train(config + "open.json", "open.json: " + json + "2" + form),
           train(config + "deep.json", "deep.json: lists and objects lie more than 1000 deep"),
           train(config + "twice.json", "twice.json: " + twice("steps")),
           train(config + "binary", "binary: " + json + "1" + form),
           train(config + "nan.json", "nan.json: " + json + "1" + form),
           train(config + "list.json",
                 "list.json: wanted a JSON object with the settings; got [1]"),
           train(config + "key.json",
                 "key.json: unknown key \"stepz\"; the nearest are steps, eps, seed"),
           train(config + "model_key.json",
                 "model_key.json: unknown key \"n_layers\"; the nearest are n_layer, xsa_layers, "
                 "n_head"),
           train(config + "kind.json", "kind.json: TrainConfig: lr must be a number; got \"fast\""),
           train(config + "minus.json",
                 "minus.json: TrainConfig: steps must be at least 0; got -3"),
           train(tiny + "text.txt --tokenizer none",
                 "no tokenizer is called \"none\"; there are: char, byte, bpe, and files"),
           train(tiny + "text.txt --tokenizer key.json",
                 "key.json: tokenizer: wanted \"type\": \"char\", \"byte\", \"bpe\" or \"llama2\"; "
                 "got "
                 "null; give the tokenizer.json of a run, GPT-2's vocab.bpe, or llama2.c's "
                 "tokenizer.bin"),
           train(tiny + "text.txt --tokenizer twice_tokens/tokenizer.json",
                 "twice_tokens/tokenizer.json: " + twice("type") +
                     "; give the tokenizer.json of a run, GPT-2's vocab.bpe, or llama2.c's "
                     "tokenizer.bin"),
           train(tiny + "text.txt --tokenizer cut.bin",
                 "cut.bin: token 1 has a length of 16777216, but the longest has 12, and 18530 "
                 "bytes are left; wanted a tokenizer of llama2.c (tok512.bin, tokenizer.bin)"),
           train(tiny + "text.txt --tokenizer bpe --vocab-size 4000",
                 "BPE: the text repeats enough for a vocabulary of 321 tokens only; got 4000; give "
                 "a smaller vocabulary or a longer text"),
           {words("train --preset tiny --data text.txt --out run"),
            "run: holds a run already (state.safetensors); go on with it by --resume run, or give "
            "a "
            "new folder"},
           {words("train --preset tiny --data text.txt --out text.txt"),
            "text.txt: is a file, not a folder; give another name"},
           {words("train --preset tiny --data text.txt --out /proc/x"),
            "/proc/x: this folder cannot be made: No such file or directory; give another one"},
           {words("report run"),
            "run/report.html: cannot be written: File too large; free some space or choose another "
            "disk",
            {.file_limit = 1000}},
           {words("doctor"),
            "PELLUCID_NUM_THREADS: wanted a number from 1 to 1024; got \"x\"",
            {.environment = {{"PELLUCID_NUM_THREADS", "x"}}}},
           {words("sample --model run"),
            "PELLUCID_GEMM: wanted native or openblas; got \"x\"",
            {.environment = {{"PELLUCID_GEMM", "x"}}}},
           {words("grade none"),
            "grade: no exercise \"none\"; there are: 01-tensors, 11-xsa, 11-xsa-kernel"},
           {words("grade 01-tensors --file none.cpp"),
            "none.cpp: cannot be opened: No such file or directory; check the path"},
           {words("eval --model run --tasks none.jsonl"),
            "none.jsonl: cannot be opened: No such file or directory; check the path"},
           {words("grade 01-tensors --junit no/x.xml"),
            "no/x.xml: cannot be written (as no/x.xml.tmp): No such file or directory; check the "
            "path, and make its folder first"},
           {words("grade 01-tensors --gradescope hollow"),
            "hollow: is not an ordinary file; choose another name"},
           {words("grade 01-tensors --file hollow"), "hollow: is a folder; wanted a file"}}));
}

TEST_CASE("bad input: settings that take more memory than there is, code 1") {
  const std::string
      there = " of memory, more than 80 % of the " + demos::memory_text(demos::machine_memory()) +
              " that this machine has; ",
      batch =
          "give a smaller batch_size, with more accumulation in its place, or "
          "block_size",
      model =
          "its parameters alone are too many: give a smaller n_embd, n_layer, block_size or "
          "vocabulary";
  const auto train = [&](const std::string& set, const std::string& about,
                         const std::string& repair) {
    return Row{words("train --data text.txt --preset tiny --out new " + set),
               "train: a step would take about " + about + there + repair};
  };
  tell("memory",
       check(1,
             {train("--set batch_size=99999999", "14.6 TB", batch),
              train("--set batch_size=2147483648", "312.8 TB", batch),
              train("--set accumulation=999999999999", "4096.0 TB", "give a smaller accumulation"),
              train("--set n_embd=65536 --set n_head=256 --set n_layer=1000", "825.7 TB", model),
              train("--documents lines --set block_size=16777216 --set n_embd=65536 "
                    "--set n_head=256",
                    "1.9 TB", model)}));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
TEST_CASE("bad input: memory that runs out on the way is one line too") {
  const TemporaryFolder folder;
  spit(folder.file("large.txt"), "");
  fs::resize_file(folder.file("large.txt"), std::uintmax_t{1} << 29);
  const Ended ended =
      run({"train", "--data", "large.txt", "--preset", "tiny", "--out", "new", "--threads", "1"},
          {.folder = folder.path.string(), .memory_limit = rlim_t{1} << 28});
  CHECK(ended.code == 1);
  CHECK(ended.err ==
        "pellucid: out of memory; give a smaller text, batch or model, or end other programs\n");
  CHECK_FALSE(fs::exists(folder.file("new")));
}
#endif
