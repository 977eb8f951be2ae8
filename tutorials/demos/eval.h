// `pellucid eval`: how well a trained model predicts a text, beside n-grams, and answers tasks.
#pragma once
#include <string>
#include <vector>

#include "tutorials/demos/data_arguments.h"
#include "tutorials/demos/ngram.h"

namespace pellucid::demos {

struct EvalArguments {
  std::string model;      // a run's folder, or a file as in sample.h
  std::string tokenizer;  // of such a file
  DataArguments data;     // documents and separator by default as in training
  bool ngram = false;
  std::vector<std::string> tasks;  // JSONL files
};
// Prints the mean loss on the part of the data that training leaves out, and on all of it; with
// ngram, those of n-grams that count the rest; then what each task's items come to. Returns the
// exit code.
int evaluate(const EvalArguments& arguments);

// The loss, in nats a byte, of an n-gram of bytes that counts the training text, on the validation
// text. With documents, a 0 stands before and behind each.
double ngram_loss(const nn::Corpus& corpus, int n, Smoothing smoothing = Smoothing::kWittenBell);

}  // namespace pellucid::demos
