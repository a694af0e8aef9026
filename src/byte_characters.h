// Bytes as printable characters, as GPT-2's files and every tokenizer.json of the byte-level kind name their tokens:
// bytes that are printable stand for themselves, the others for U+0100 and on.
#pragma once
#include <optional>
#include <string>
#include <string_view>

std::string to_characters(std::string_view bytes);
// Of a name in UTF-8; none where a character stands for no byte.
std::optional<std::string> from_characters(std::string_view name);
