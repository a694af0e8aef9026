// ./train: trains a full-bandwidth transformer.
#include "program.h"
#include "signals.h"
#include "trainer.h"

int main(int argc, char** argv) {
  return run_program(argv, [&] {
    TrainOptions options;
    Flags flags("./train", "Trains a full-bandwidth transformer, or a plain one, and shows what its feedback does.");
    add_train_flags(flags, options);
    flags.examples({"./train                           # the built-in corpus",
                    "./train --data book.txt --model micro --out runs/book",
                    "./train --resume --out runs/book  # goes on after Ctrl-C"});
    flags.parse(argc, argv);

    Trainer trainer(options, flags);
    if (!options.dump.empty()) {
      trainer.dump();
      return 0;
    }
    catch_stop_signals(false,
                       {"stopping: the run is saved as soon as the work at hand is done",
                        "not yet done; once more ends it at once, and loses the steps since the last checkpoint"});
    if (!trainer.run()) return 128 + stop_signal();
    release_stop_signals();  // all is saved
    trainer.report();
    return 0;
  });
}
