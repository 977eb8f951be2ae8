#!/bin/sh
# Runs the tests built in BUILD and ends with the figures they measured and the counts:
#   sh tests/run.sh BUILD [--all] [NAME...]     NAME: only groups whose name contains it
set -u
build=$1
shift
filter=
while [ $# -gt 0 ]; do
  case $1 in
    --all) export PELLUCID_TEST_ALL=1 ;;
    -*) echo "pellucid test: no option $1; there is --all" >&2 && exit 2 ;;
    *) filter="$filter${filter:+|}$1" ;;
  esac
  shift
done
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
log=$build/Testing/Temporary/LastTest.log
rm -f "$log"

# Each test program prints its cases' results; CTest shows the groups as they end and keeps all output.
ctest --test-dir "$build" -j "$cores" --output-on-failure --timeout 3600 ${filter:+-R "$filter"}
status=$?

# A group that crashed, or that is no doctest program, counts as one test.
awk -F' [|] ' -v status=$status '
  /^[0-9]+\/[0-9]+ Testing: / { counted = failed_here = 0 }
  /^FIGURE \| /  { if (!n++) print "\nFigures measured by this run"; printf "  %-66s %s\n", $2, $3 }
  /^SKIPPED \| / { skipped++; names = names sprintf("  %s (%s)\n", $2, $3) }
  /^CASES \| /   { passed += $2; failed += $3; counted = 1; failed_here = $3 }
  /^Test Passed/ { if (!counted) passed++ }
  /^Test Failed/ { if (!failed_here) failed++ }
  END {
    if (skipped) printf "\nSkipped\n%s", names
    if (status != 0 && failed == 0) failed = 1
    printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0 || passed == 0
  }' "$log"
