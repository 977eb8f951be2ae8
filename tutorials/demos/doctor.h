// `pellucid doctor`: what this build and this machine have, and how to mend what is missing.
#pragma once

namespace pellucid::demos {

int doctor();  // returns the exit code: 0, or 1 if something gives wrong results

}  // namespace pellucid::demos
