// The `tepal` command line tool. docs/tool.md is its guide.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tepal/status.h"
#include "tepal/targets.h"
#include "tepal/version.h"
#include "tools/tepal/command.h"

namespace tepal::tool {
namespace {

// What scripts see. `query` has none of its own: no match is an answer, not a failure.
enum ExitCode { kDone = 0, kFailed = 1, kWrongUsage = 2 };

constexpr const char* kFooter =
    "Numbers take units: 10M keys, 64MiB, 1%, 100ns.\n"
    "Exit codes: 0 done; 1 failed (input, output, a corrupt or wrong file); 2 wrong usage.\n"
    "'tepal COMMAND --help' explains a command and has an example.";

int Report(const Status& status) {
  if (status.ok()) return kDone;
  std::fprintf(stderr, "tepal: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? kWrongUsage : kFailed;
}

// Buffered output may fail as late as here, on a full disk.
Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status::Ok();
  return Status::IoError("cannot write to standard output");
}

int Main(int argc, char** argv) {
  CLI::App app("Tepal: approximate-membership filters of keys in files and pipes.", "tepal");
  app.set_version_flag("--version", std::string("tepal ") + Version());
  app.footer(kFooter);
  app.require_subcommand(1);
  const std::vector<Command> commands = AddCommands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // A mistyped word explains what is missing.
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    if (unknown.empty()) return app.exit(error), kWrongUsage;
    return Report(Status::InvalidArgument("'" + unknown.front() + "' is no command or option"));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? Report(FlushOutput()) : kWrongUsage;
  }
  if (const Status status = CheckEnvironment(); !status.ok()) return Report(status);
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    if (const Status status = command.run(); !status.ok()) return Report(status);
  }
  return Report(FlushOutput());
}

}  // namespace
}  // namespace tepal::tool

int main(int argc, char** argv) {
  // "tepal query ... | head" ends when head does, without a word, whatever the parent has set.
  std::signal(SIGPIPE, SIG_DFL);
  // A file beyond "ulimit -f" is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return tepal::tool::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tepal: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tepal: %s\n", error.what());
  }
  return 1;
}
