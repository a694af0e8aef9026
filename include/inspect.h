// What is in a token file, for people.
#pragma once
#include <string>

#include "tokenizer.h"

// Its size, statistics of documents and tokens, and how some documents begin. Without a tokenizer (null) what stands in
// it is unknown, and so is where documents end. Fails by name for a broken file, and for another tokenizer's.
std::string describe_shard(const std::string& path, const Tokenizer* tokenizer);
