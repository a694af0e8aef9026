// Tokens of text: raw bytes (0 … 255), then the specials. The end-of-text marker is a target at a document's end, and
// the prompt where a prompt is empty; no byte sequence in a text becomes it.
#pragma once
#include <string>
#include <vector>

constexpr int kEndOfText = 256;
constexpr int kByteVocab = 257;

std::vector<int> encode(const std::string& text);
std::string decode(const std::vector<int>& tokens);  // specials and out-of-range ids give nothing
std::string decode_token(int token);

// Cuts a stream of bytes at UTF-8 borders, so that streaming output shows whole characters: push bytes, print what
// comes back; what is left at the end comes from flush(). Invalid bytes pass through as they are.
class Utf8Stream {
 public:
  std::string push(const std::string& bytes);
  std::string flush();

 private:
  std::string pending_;
};
