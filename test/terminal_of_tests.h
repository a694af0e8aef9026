// A terminal in which tests see what is drawn.
#pragma once
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <string>

// A terminal of our own, and what a program wrote on it.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    grantpt(master_);
    unlockpt(master_);
    out = fopen(ptsname(master_), "w");
    termios raw;
    tcgetattr(fileno(out), &raw);
    raw.c_oflag &= ~tcflag_t(OPOST);  // newlines stay as they are
    tcsetattr(fileno(out), TCSANOW, &raw);
    resize(columns);
    setenv("TERM", "xterm", 1);
  }
  ~Terminal() {
    fclose(out);
    close(master_);
  }
  void resize(unsigned short columns) {
    winsize size = {24, columns, 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
  }
  // What came since the last call. The kernel hands it over when it likes, so a mark is written and waited for.
  std::string seen() {
    constexpr char kMark = '\x06';
    fputc(kMark, out);
    fflush(out);
    std::string all;
    char c;
    while (read(master_, &c, 1) == 1 && c != kMark) all += c;
    return all;
  }
  FILE* out;

 private:
  int master_;
};
