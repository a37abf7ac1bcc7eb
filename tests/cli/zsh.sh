#!/bin/sh
# zsh: the completion at work in an interactive zsh (zpty), as `compinit` finds it in $fpath; skipped where there is no zsh.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
if ! command -v zsh > /dev/null 2>&1 || ! zsh -fc 'zmodload zsh/zpty' 2> /dev/null; then
    echo 'skip zsh: no zsh with zpty (Debian package zsh)'
    exit 0
fi
mkdir -p "$work/fpath" "$work/bin" "$work/user/folder"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(cd "$(dirname "$DLMODEL")" && pwd)/$(basename "$DLMODEL")" > "$work/bin/dlmodel"
chmod +x "$work/bin/dlmodel"
: > "$work/user/table.csv"
run help --completion zsh
check 'the completion is printed' 0
cp "$work/out" "$work/fpath/_dlmodel"
# Types each argument and a tab, and prints `=== ARGUMENT`, what the terminal showed, and LINE<...>, what the line became. A line
# is never run: the widget behind ^X s replaces it by `:`.
cat > "$work/try.zsh" <<'END'
zmodload zsh/zpty
typeset -F SECONDS
await() { # await PATTERN: reads until it has come, for two minutes at most; what came is in $shown
  local piece; local -F limit=$(( SECONDS + 120 )); shown=
  while (( SECONDS < limit )); do
    if zpty -rt z piece; then shown+=$piece; [[ $shown == ${~1} ]] && return 0; else zselect -t 3; fi
  done
  return 1
}
zmodload zsh/zselect
work=$1
shift
cd $work/user && export TERM=dumb HOME=$work/user
zpty -b z zsh -f -i
zpty -w z "PS1='> '; PROMPT_EOL_MARK=; unsetopt prompt_sp; stty cols 200 rows 200; LISTMAX=1000; setopt no_always_last_prompt"
zpty -w z "fpath=(${(q)work}/fpath \$fpath); path=(${(q)work}/bin \$path); autoload -Uz compinit; compinit -u -d ${(q)work}/dump"
zpty -w z "show() { zle -I; print -r -- \"LI\"\"NE<\$BUFFER>\"; BUFFER=: ; zle accept-line }; zle -N show; bindkey '^Xs' show; print REA''DY"
await '*READY*' || { print 'not ready'; exit 1 }
for line in "$@"; do
  zpty -wn z "$line"$'\t\x18s'
  print -r -- "=== $line"
  await '*LINE<*>*' || { print 'no answer'; exit 1 }
  print -r -- "$shown"
done
zpty -d z
END
DLMODEL_DATA=${DLMODEL_DATA:-$(pwd)/data} zsh -f "$work/try.zsh" "$work" 'dlmodel ' 'dlmodel repo' 'dlmodel report --mark' 'dlmodel predict --system abci' \
    'dlmodel predict --system=abci' 'dlmodel predict -s abci' 'dlmodel predict --framework horovod-k' 'dlmodel predict --strategy data+sp' 'dlmodel predict --format c' \
    'dlmodel predict --precision fp' 'dlmodel predict -p mi' 'dlmodel plot alpha' 'dlmodel plot scaling tab' 'dlmodel schema runl' 'dlmodel slurm sub' \
    'dlmodel help --compl' 'dlmodel compare tab' 'dlmodel --col' < /dev/null 2> "$work/err" | tr -d '\r\007' > "$work/shown"
of() { awk -v want="=== $1" '$0 == want { on = 1; next } /^=== / { on = 0 } on' "$work/shown" > "$work/out"; }
line() { # line TYPED EXPECTED: what the line becomes
    of "$1"
    if grep -Fq "LINE<$2>" "$work/out"; then echo "ok zsh completes '$1'"; else bad "zsh completes '$1'" "expected: $2"; fi
}
status=0
of 'dlmodel '
for command in calibrate predict search explain compare plot report slurm import list schema help; do
    grep -Eq "^$command +-- " "$work/out" || bad 'zsh offers every command' "$command"
done
has 'zsh shows what a command does' 'predict +-- predict time per iteration'
line 'dlmodel repo' 'dlmodel report '
line 'dlmodel report --mark' 'dlmodel report --markdown '
line 'dlmodel predict --system abci' 'dlmodel predict --system abci-v100 '
line 'dlmodel predict --system=abci' 'dlmodel predict --system=abci-v100 '
line 'dlmodel predict -s abci' 'dlmodel predict -s abci-v100 '
line 'dlmodel predict --framework horovod-k' 'dlmodel predict --framework horovod-keras '
line 'dlmodel predict --strategy data+sp' 'dlmodel predict --strategy data+spatial '
line 'dlmodel predict --format c' 'dlmodel predict --format csv '
of 'dlmodel predict --precision fp'
has 'zsh offers precisions' 'fp16 +fp32 +fp8'
line 'dlmodel predict -p mi' 'dlmodel predict -p mixed '
line 'dlmodel plot alpha' 'dlmodel plot alphabeta '
line 'dlmodel plot scaling tab' 'dlmodel plot scaling table.csv '
line 'dlmodel schema runl' 'dlmodel schema runlog '
line 'dlmodel slurm sub' 'dlmodel slurm submit '
line 'dlmodel help --compl' 'dlmodel help --completion='
line 'dlmodel compare tab' 'dlmodel compare table.csv '
line 'dlmodel --col' 'dlmodel --color='
