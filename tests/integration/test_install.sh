#!/usr/bin/env bash
# What is installed works from its new place: the library for C and C++ through
# pkg-config, the programs, and nothing but the public names comes out.
. "$(dirname "$0")/../support/lib.sh"

cmake=${CMAKE_COMMAND-cmake}
DESTDIR=$WORK/root "$cmake" --install "$INFERSTAT_BUILD" --prefix /opt/inferstat >"$WORK/install.log" 2>&1 ||
  fail "cmake --install"
prefix=$WORK/moved
mv "$WORK/root/opt/inferstat" "$prefix"

for program in inferstat inferstatd inferstat-worker; do
  expect_exit 0 "$prefix/bin/$program" --version
  expect_text "$WORK/out" "$program"
done
for file in include/inferstat.h share/bash-completion/completions/inferstat \
  share/zsh/site-functions/_inferstat share/fish/vendor_completions.d/inferstat.fish \
  lib/systemd/system/inferstatd.service lib/sysusers.d/inferstat.conf; do
  [ -s "$prefix/$file" ] || fail "not installed: $file"
done
grep -q "^ExecStart=/opt/inferstat/bin/inferstatd " "$prefix/lib/systemd/system/inferstatd.service" ||
  fail "the unit starts another program"

library=$(find "$prefix/lib" -name 'libinferstat.so' | head -n 1)
[ -n "$library" ] || fail "no libinferstat.so"
nm -D --defined-only "$library" | awk '{ print $NF }' | grep -vE '^inferstat_[a-z0-9_]+$' >"$WORK/foreign" || true
# A sanitized build adds names of the compiler's own.
[ -n "${INFERSTAT_SANITIZE-}" ] || [ ! -s "$WORK/foreign" ] ||
  fail "names beside inferstat_*: $(head -n 5 "$WORK/foreign" | tr '\n' ' ')"
sed '/^typedef/d;s|//.*||' "$prefix/include/inferstat.h" | grep -oE '\binferstat_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$WORK/promised"
nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u >"$WORK/kept"
comm -23 "$WORK/promised" "$WORK/kept" >"$WORK/absent"
[ ! -s "$WORK/absent" ] || fail "in the header, not in the library: $(tr '\n' ' ' <"$WORK/absent")"

# The same program in both languages.
cat >"$WORK/engine.c" <<'CODE'
#include <inferstat.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct inferstat_options options;
    struct inferstat_error err;
    struct inferstat_monitor *monitor = NULL;
    struct inferstat_timer timer;
    struct inferstat_summary summary;
    inferstat_options_init(&options);
    options.report = 0;
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    memset(&timer, 0, sizeof timer);
    inferstat_timer_begin(&timer, monitor, inferstat_name(monitor, "check"));
    inferstat_timer_end(&timer, NULL);
    inferstat_get_summary(monitor, &summary);
    inferstat_close(monitor, 0, NULL);
    printf("%d operations\n", (int)summary.operations);
    return summary.operations == 1 ? 0 : 1;
}
CODE
cp "$WORK/engine.c" "$WORK/engine.cpp"
PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs inferstat)"
[ -z "${INFERSTAT_SANITIZE-}" ] || flags+=("-fsanitize=$INFERSTAT_SANITIZE")
for language in "${CC-cc} -std=c11 $WORK/engine.c" "${CXX-c++} -std=c++17 $WORK/engine.cpp"; do
  read -ra compile <<<"$language"
  expect_exit 0 "${compile[@]}" -Wall -Wextra -Wpedantic -Werror -o "$WORK/engine" "${flags[@]}"
  expect_exit 0 env "LD_LIBRARY_PATH=$(dirname "$library")" "$WORK/engine"
  expect_text "$WORK/out" "1 operations"
done

# The example builds as it was installed.
example=$(find "$prefix/share/doc" -name 'example_engine.c' | head -n 1)
[ -n "$example" ] || fail "no example"
expect_exit 0 "${CC-cc}" -std=c11 -D_GNU_SOURCE -o "$WORK/example" "$example" "${flags[@]}"
