#!/bin/sh
# Seeds each mistake of tests/mutants.txt into a copy of the tree, builds the one test program that
# should catch it, and runs that; it must fail. Prints a table and "N of N caught".
#   sh tests/mutants.sh ROOT [WORD...]     WORD: only mutants with one of them in name, file or test
# The copy and its build stay in ROOT/build-mutants, so that a second run only builds what changed.
set -u
root=$1
shift
work=$root/build-mutants
tree=$work/tree
build=$work/build
log=$work/log
die() { printf 'mutants: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
limit=
if has timeout; then limit="timeout 600"; fi

# ---- the copy -------------------------------------------------------------------------------------

files_of() {
  (cd "$1" && find CMakeLists.txt CMakePresets.json CONTRIBUTING.md README.md pellucid kernels tensor autograd nn tutorials tests -type f) | sort
}
mkdir -p "$tree" "$build"
files_of "$root" >"$work/files"
files_of "$tree" 2>/dev/null | while IFS= read -r file; do
  grep -Fqx "$file" "$work/files" || rm "$tree/$file"
done
while IFS= read -r file; do
  cmp -s "$root/$file" "$tree/$file" && continue
  mkdir -p "$tree/$(dirname "$file")"
  cp "$root/$file" "$tree/$file" || die "cannot copy $file"
done <"$work/files"
if [ ! -f "$build/build.ninja" ]; then
  launcher=
  if has ccache; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  # shellcheck disable=SC2086 # one option or none
  cmake -S "$tree" -B "$build" -G Ninja ${CXX:+-DCMAKE_CXX_COMPILER="$CXX"} $launcher >"$log" 2>&1 || {
    cat "$log" >&2
    die "configuring failed; the lines above say why"
  }
fi

# ---- the parts of a run ---------------------------------------------------------------------------

# Field $2 of block $1 of the list; field "name" is its first line.
field() {
  awk -v want="$1" -v key="$2" '
    /^#/ { next }
    /^$/ { inside = 0; next }
    !inside { inside = 1; n++; if (n == want && key == "name") print; next }
    n == want && index($0, key " ") == 1 { print substr($0, length(key) + 2) }
  ' "$root/tests/mutants.txt"
}

# The file with the text, which must occur in it once, replaced.
replace() {
  OLD=$2 NEW=$3 awk '
    BEGIN { old = ENVIRON["OLD"]; new = ENVIRON["NEW"] }
    {
      at = index($0, old)
      if (at) {
        count++
        rest = substr($0, at + length(old))
        if (index(rest, old)) count++
        $0 = substr($0, 1, at - 1) new rest
      }
      print
    }
    END { exit count != 1 }
  ' "$1"
}

# Builds and runs the tests $1, with the variables $2 ...: 0 they pass, 1 they fail, 2 not built.
run_tests() {
  group=$1
  shift
  target=test_$(echo "$group" | sed 's/\./_/')
  ninja -C "$build" "$target" >"$log" 2>&1 || return 2
  # shellcheck disable=SC2086 # a command with its argument, or nothing
  env "$@" $limit "$build/tests/$target" >"$log" 2>&1 || return 1
}

# What the failed run in the log stumbled over first.
catcher() {
  case_name=$(sed -n 's/^TEST CASE: *//p' "$log" | head -n 1)
  echo "${case_name:-it crashed or never ended}" | cut -c 1-60
}

# ---- all of them ----------------------------------------------------------------------------------

total=$(awk '/^#/ { next } /^$/ { inside = 0; next } !inside { inside = 1; n++ } END { print n + 0 }' "$root/tests/mutants.txt")
[ "$total" -gt 0 ] || die "tests/mutants.txt lists nothing"
selected=0
caught=0
clean=' '
printf '| %-58s | %-28s | %-22s | %-60s | s |\n' mutant file tests "caught by"
i=0
while [ "$i" -lt "$total" ]; do
  i=$((i + 1))
  name=$(field "$i" name) file=$(field "$i" file) test=$(field "$i" test)
  wanted=$#
  for word; do
    case "$name $file $test" in *"$word"*) wanted=0 ;; esac
  done
  [ "$wanted" = 0 ] || continue
  selected=$((selected + 1))

  # A group that fails without a mistake would catch everything.
  case $clean in
    *" <$test> "*) ;;
    *)
      # shellcheck disable=SC2086 # the group and its variables
      run_tests $test || {
        tail -n 30 "$log" >&2
        die "$test does not pass as it is; the lines above say why"
      }
      clean="$clean<$test> "
      ;;
  esac

  replace "$tree/$file" "$(field "$i" old)" "$(field "$i" new)" >"$work/mutant" ||
    die "$name: its text does not occur exactly once in $file"
  cp "$tree/$file" "$work/right"
  cp "$work/mutant" "$tree/$file"
  began=$(date +%s)
  # shellcheck disable=SC2086
  run_tests $test
  case $? in
    1)
      caught=$((caught + 1))
      by=$(catcher)
      ;;
    0) by="NOTHING" ;;
    *) by="NOTHING: it does not build" ;;
  esac
  ended=$(date +%s)
  cp "$work/right" "$tree/$file"
  printf '| %-58s | %-28s | %-22s | %-60s | %s |\n' "$name" "$file" "${test%% *}" "$by" $((ended - began))
done

printf '\n%s of %s caught\n' "$caught" "$selected"
[ "$caught" = "$selected" ] && [ "$selected" -gt 0 ]
