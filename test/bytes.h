// Bytes as tokens, for tests that look at single tokens.
#pragma once
#include <string>
#include <vector>

#include "tokenizer.h"

constexpr int kEndOfText = 256;
constexpr int kByteVocab = 257;

inline std::vector<int> encode(const std::string& text) { return Tokenizer().encode(text); }
inline std::string decode(const std::vector<int>& tokens) { return Tokenizer().decode(tokens); }
