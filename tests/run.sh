#!/bin/sh
# Runs the tests built in BUILD and ends with the figures they measured and the counts:
#   sh tests/run.sh BUILD [--without REGEX] [--all] [NAME...]     NAME: only groups whose name contains it
set -u
case ${1:-} in
  --help)
    echo "Usage: ./pellucid test [--all] [NAME...]   --all: the long tests too; NAME: only groups whose name has it"
    echo "       ./pellucid test --sanitize [--all] [NAME...]   the same under the address, undefined and thread sanitizers"
    echo "       ./pellucid test --mutants [WORD...]   seed mistakes: each must be caught; WORD: only those with it in their line"
    exit 0
    ;;
esac
build=$1
shift
names=
without=
while [ $# -gt 0 ]; do
  case $1 in
    --all) export PELLUCID_TEST_ALL=1 ;;
    --without) without=$2 && shift ;;
    -*) echo "pellucid test: no option $1; there is --all, and right after test --sanitize or --mutants" >&2 && exit 2 ;;
    *) names="$names${names:+
}$1" ;;
  esac
  shift
done
# As CTest wants them: one regular expression, in which a name's own characters mean themselves.
# shellcheck disable=SC2016 # the $ there is sed's
filter=$(printf '%s' "$names" | sed 's/[][\\.*^$()+?|]/\\&/g' | paste -s -d '|' -)
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
log=$build/Testing/Temporary/LastTest.log
mkdir -p "$build/Testing/Temporary"
: >"$log"

# Each test program prints its cases' results; CTest shows the groups as they end and keeps all output.
ctest --test-dir "$build" -j "$cores" --output-on-failure --timeout 3600 ${filter:+-R "$filter"} ${without:+-E "$without"}
status=$?

# A group that crashed, ran too long, was not built, or is no doctest program counts as one test. Of
# one that was not built the log says "Test Passed.", but gives it no command.
NAMES=$names awk -F' [|] ' -v status=$status -v without="${without:+1}" '
  /^[0-9]+\/[0-9]+ Testing: / { groups = groups $0 "\n"; outside = 1; counted = failed_here = 0 }
  outside && /^Command: ""/   { not_run = 1 }
  outside && /^Output:/       { outside = 0 }
  /^<end of output>/          { outside = 1 }
  !outside && /^FIGURE \| /  { figures = figures sprintf("  %-66s %s\n", $2, $3) }
  !outside && /^SKIPPED \| / { skipped++; names = names sprintf("  %s (%s)\n", $2, $3) }
  !outside && /^CASES \| /   { passed += $2; failed += $3; counted = 1; failed_here = $3 }
  outside && /^Test (Passed|Failed)/ {
    if (not_run || (/Failed/ && !failed_here)) failed++
    else if (/Passed/ && !counted) passed++
    not_run = 0
  }
  END {
    if (figures) printf "\nFigures measured by this run\n%s", figures
    if (skipped) printf "\nSkipped\n%s", names
    count = split(ENVIRON["NAMES"], name, "\n")
    for (n = 1; n <= count; n++)
      if (!index(groups, name[n]) && (!groups || !without))
        printf "\nNo group of tests has a name with %s in it; ctest --test-dir build -N lists them\n", name[n]
    if (status != 0 && failed == 0) failed = 1
    printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0 || passed == 0
  }' "$log"
