#!/bin/sh
# Builds the tests under sanitizers, each kind in a folder of its own, runs them, and prints a table:
#   sh tests/sanitize.sh ROOT [--all] [NAME...]     NAME: only groups whose name contains it
# CXX chooses the compiler. Exit 1 where a test fails or a sanitizer reports; nothing is suppressed.
set -u
root=$1
shift
cxx=${CXX:-c++}
has() { command -v "$1" >/dev/null 2>&1; }
die() { printf 'sanitize: %s\n' "$*" >&2; exit 1; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# Groups that a sanitizer cannot run, one a line: name, kinds, why.
left_out="\
autograd.chain address,undefined thread: walks a graph on a stack of 256 KiB; a sanitizer's frames are larger
course.grade address,undefined thread: an exercise has AddressSanitizer of its own
course.hints address,undefined thread: an exercise has AddressSanitizer of its own
course.kill_table address,undefined thread: an exercise has AddressSanitizer of its own
course.lessons thread: grades an exercise, which has AddressSanitizer of its own
demos.start_script address,undefined thread: runs the start script among stubs, no library code
structure.mutants address,undefined thread: runs shell scripts, no library code
structure.package address,undefined thread: builds the library anew, without them
structure.presets address,undefined thread: configures builds, no library code
structure.run_script address,undefined thread: runs shell scripts, no library code
structure.sanitize address,undefined thread: runs shell scripts, no library code"

targets() {
  filter=
  for argument; do
    case $argument in -*) ;; *) filter="$filter${filter:+
}$argument" ;; esac
  done
  [ -n "$filter" ] || { echo all; return; }
  printf '%s\n' "$root"/tests/*/*_test.cpp |
    sed -n 's|.*/\([^/]*\)/\([^/]*\)_test\.cpp$|\1.\2|p' | grep -F -e "$filter" |
    sed 's/\./_/; s/^/test_/' | grep . || die "no group of tests has a name with $filter in it"
}

# Compiles the program on stdin with -fsanitize=$1 to $scratch/probe.
probe() { "$cxx" -x c++ -fsanitize="$1" -g -o "$scratch/probe" - 2>"$scratch/log"; }

# LeakSanitizer stops the program with ptrace, which containers and debuggers may forbid.
leaks=0
if echo 'int main() { volatile char* p = new char[7]; p = nullptr; return 0; }' | probe address &&
  ! ASAN_OPTIONS=detect_leaks=1 "$scratch/probe" >"$scratch/log" 2>&1 &&
  grep -q 'detected memory leaks' "$scratch/log"; then
  leaks=1
fi

# ThreadSanitizer wants its addresses where newer kernels put something else at random.
fixed_addresses=
if echo 'int main() {}' | probe thread && ! "$scratch/probe" >"$scratch/log" 2>&1; then
  fixed_addresses="setarch -R"
  $fixed_addresses "$scratch/probe" >"$scratch/log" 2>&1 || fixed_addresses=
fi

status=0
: >"$scratch/table"
chosen=$(targets "$@") || exit 1
for kind in address,undefined thread; do
  # OpenBLAS's threads are not compiled with ThreadSanitizer, which cannot see what they wait for.
  case $kind in
    thread) build=$root/build-tsan prefix=$fixed_addresses blas=OFF ;;
    *) build=$root/build-asan prefix= blas=AUTO ;;
  esac
  launcher=
  if has ccache; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  mkdir -p "$build"
  # shellcheck disable=SC2086 # one option or none
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$cxx" $launcher \
    -DPELLUCID_SANITIZE="$kind" -DPELLUCID_OPENBLAS=$blas >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    die "configuring failed; the lines above say why"
  }
  # shellcheck disable=SC2086 # a list of targets
  ninja -C "$build" $chosen >&2 || die "the build with -fsanitize=$kind failed; the lines above say why"

  # A process that reports writes a file, also one whose output a test keeps to itself.
  rm -rf "$build/reports"
  mkdir -p "$build/reports"
  without=$(printf '%s\n' "$left_out" | sed -n "s/^\([^ ]*\) .*${kind}[ :].*/^\1\$/p" | paste -s -d '|' -)
  export ASAN_OPTIONS="detect_leaks=$leaks:allocator_may_return_null=1:log_path=$build/reports/address"
  export UBSAN_OPTIONS="print_stacktrace=1:log_path=$build/reports/undefined"
  export TSAN_OPTIONS="second_deadlock_stack=1:allocator_may_return_null=1:log_path=$build/reports/thread"
  began=$(date +%s)
  $prefix sh "$root/tests/run.sh" "$build" --without "$without" "$@" >"$build/tests.log" 2>&1 || status=1
  cat "$build/tests.log"
  counts=$(tail -n 1 "$build/tests.log")
  # LeakSanitizer also notes there what it could not stop in time; that is no report.
  find "$build/reports" -type f -exec grep -lv 'was not suspended' {} + >"$scratch/reports"
  reports=$(wc -l <"$scratch/reports")
  [ "$reports" -eq 0 ] || status=1
  sort "$scratch/reports" | head -n 3 | while IFS= read -r report; do
    printf '\n%s\n' "$report"
    head -n 40 "$report"
  done
  printf '| %-17s | %-36s | %7s | %7s |\n' "$kind" "$counts" $reports $(($(date +%s) - began)) >>"$scratch/table"
done

printf '\nLeft out\n'
printf '%s\n' "$left_out" | sed 's/^/  /'
echo '  OpenBLAS thread: its own threads are not compiled with the sanitizer'
[ "$leaks" = 1 ] || echo '  leaks: LeakSanitizer needs ptrace, which this system forbids; the op table counts nodes and memory'
printf '\n| %-17s | %-36s | %7s | %7s |\n' sanitizer tests reports seconds
cat "$scratch/table"
exit $status
