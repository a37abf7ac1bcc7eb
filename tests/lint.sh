#!/bin/sh
# shellcheck disable=SC2046,SC2038,SC2086 # names in this tree have no blanks
# lint.sh - rules that a compiler does not check. "ok NAME", "not ok NAME" and, for a tool that is not there, "skip NAME: REASON" lines;
# exit 1 when a rule is broken.
set -u
cd "$(dirname "$0")/.." || exit 2
broken=0

rule() { # rule NAME OFFENDERS
    if [ -z "$2" ]; then
        printf 'ok %s\n' "$1"
    else
        printf 'not ok %s\n' "$1"
        echo "$2" | head -n 30
        echo "$2" | awk 'END { if (NR > 30) printf "and %d more\n", NR - 30 }'
        broken=1
    fi
}


# Rooms of the program; each may include those before it, calibrate and slurm model and process alone.
rooms='model process import predict fits plots library calibrate slurm'
# Sources and headers below the folders named.
sources() { find "$@" -name '*.[ch]' | LC_ALL=C sort; }
headers() { find "$@" -name '*.h' | LC_ALL=C sort; }
# All C files of this tree.
everything() { sources $rooms serve include tests; echo dlmodel.c; }
cores=$(nproc)

# Of these folders, each may include itself and those before it.
one_way() { # one_way PARENT FOLDER...
    parent=$1
    shift
    while [ $# -gt 1 ]; do
        layer=$1
        shift
        grep -rnE "#include \"$parent/($(echo "$*" | tr ' ' '|'))/" "$parent/$layer"
    done
}
rule 'includes of model/ point one way' "$(one_way model core statistics machine workload network plan framework engine search catalog)"
rule 'includes of calibrate/ point one way' "$(one_way calibrate plan run fits profile report)"
rule 'includes of slurm/ point one way' "$(one_way slurm cluster run script commands)"
rule 'includes of predict/ point one way' "$(one_way predict manual options compare inputs output export commands)"
may_include() { # may_include ROOM 'ROOM|ROOM': all that it may include
    grep -nE '#include "(model|process|import|predict|fits|plots|library|calibrate|slurm|serve|tests)/' $(sources "$1") | grep -vE "#include \"($2)/"
}
rule 'model includes model alone' "$(may_include model model)"
rule 'process includes model alone' "$(may_include process 'model|process')"
rule 'import includes model and process alone' "$(may_include import 'model|process|import')"
rule 'predict includes model, process and import alone' "$(may_include predict 'model|process|import|predict')"
rule 'fits includes model, process, import and predict' "$(may_include fits 'model|process|import|predict|fits')"
rule 'plots includes no fits, library, calibration or service' "$(may_include plots 'model|process|import|predict|plots')"
rule 'library includes no calibration or service' "$(may_include library 'model|import|predict|fits|plots|library')"
rule 'calibrate includes model and process alone' "$(may_include calibrate 'model|process|calibrate')"
rule 'slurm includes model and process alone' "$(may_include slurm 'model|process|slurm')"
rule 'serve includes no calibration and no Slurm' "$(may_include serve 'model|process|import|predict|fits|plots|library|serve')"
rule 'only json_scan.c includes cJSON' "$(grep -lE '#include [<"].*cJSON' $(sources $rooms serve) dlmodel.c | grep -v '^model/core/json_scan.c$')"
rule 'vendor headers in probes alone' "$(grep -lE '#include <(cuda|cublas|cudnn|nccl|mpi|cblas|oneapi|dnnl)' $(sources $rooms serve) dlmodel.c | grep -v '^calibrate/probes/')"
rule 'the model has no clock and prints nothing' "$(grep -nE '\b(clock_gettime|time\(NULL\)|gettimeofday|printf\(|fprintf\(|puts\(|exit\(|abort\()' $(sources model) | grep -vE 'snprintf|vsnprintf|dl_arena_printf|__attribute__')"
rule 'the model has no writable globals' "$(grep -nE '^static [a-z].*;$' $(sources model) | grep -vE 'const|\(|^[^:]*:[0-9]*:static (inline|_Noreturn)')"
links='(bandwidth_|latency_s|nccl_bandwidth|flow_bandwidth|channel|edge|peer_|cross_bandwidth|adapters_per|rdma|gpudirect|distance|per_message|domain_nodes|sockets_per|kind)'
rule 'paths alone read links' "$(grep -nE "(intra|inter|link)(\.|->)$links" $(sources model) | grep -vE '^model/(machine/|network/path|search/limits\.c)|links\.int')"
rule 'file names are unique' "$(find $rooms serve tests -name '*.[ch]' -not -path 'tests/fake_cuda/include/*' | sed 's|.*/||' | sort | uniq -d)"
# brackets, so that the rule does not find itself
rule 'nothing names a path of one machine' "$(git grep -nIE '(/roo[t]/|/hom[e]/[a-z]|/wor[k]/|/tmp/[h]/)' 2> /dev/null)"

rule 'every header compiles alone' "$(headers $rooms serve | xargs -P "$cores" -I HEADER sh -c \
    '${CC:-gcc} -std=c11 -D_POSIX_C_SOURCE=200809L -I. -Wall -Wextra -fsyntax-only -x c HEADER 2> /dev/null || echo HEADER')"

# A double in a struct says its unit at the end of its name, or is one of these. Add a name here only with its reason.
#   counts and extents of shapes, in the words of the field; numbers of ranks, steps, launches; the coordinates of a kernel
#   of transformers: layers of a stack and of a stage, ranks that hold the same, pieces of gradients, tensors
transformers='all_layers end_layers packed_length_tokens listed_layers layers dense_prefix_layers most_parameters bucket_elements_per_rank expert_imbalance shard_ranks capacity expert_parameters expert_replicas held_experts rows_per_token top_k softmax_matrices softmax_keys buckets experts micro_batches stack stage_layers replicas tensor_count'
#   of language models: keys that a query sees, channels that turn or that keys have, parameters that a token uses, sizes of shapes
models='head_dim value_dim queries keys key window rotary kv_channels active_parameters model_macs_per_sample longest only'
counts='state state_heads state_groups state_in_channels state_out_channels tp pp cp ep micro seq batch channels in_channels out_channels filters groups heads kv_heads hidden rows tables tokens sequence correlation vocabulary transformer_layers
in out in dims kernel stride pad dilation size target index parameters network_parameters ranks nodes per_node workers servers flows flows_per_adapter steps launches
tree_channels m n k waves half_waves half_m half_n half_k channel_multiple batch_padding stride_area units prefetch_batches
zero_stages head_copies score_kernels norm_small_kernels activation_copies copies hops pack_tensors servers_per_node workers_per_node communication_cores knl_communication_cores kernels reads writes update_launches_per_tensor gradient_launches_per_tensor devices_per_process forward_macs forward_macs_per_sample grid parts spatial_dims
'"$transformers $models"
#   plain ratios and factors
factors='share factor memory_efficiency scaling_efficiency bottleneck_share oversubscription uplink_load bisection scale compute_scale dropout power stride_exponent wave_exponent wave_steps stride_channels_exponent stride_filters_exponent
unaligned_gain m_trans_gain n_trans_gain gain_3x3 gain_5x5 padded_pointwise_gain narrow_gain pointwise_gain grouped_gain
partial_waves winograd_gain spread_gain gather_gain winograd_tiles out_positions taps
batch_exponent_3x3 tile_excess tile_exponent tile_64_gain tile_32_gain'
#   values whose unit stands beside them: fields of files, cells of tables, coordinates of a fitted surface (logarithms)
#   money and emissions, in the currency and the unit that the file names; keys of a heap; the reduction of a search
# a bucket of permits: how many it may hold, how many it holds
limits='burst tokens'
money='budget cost cost_per_sample cost_per_million_samples run_cost price_per_node_hour pue carbon_g carbon_g_per_kwh efficiency reduction'
generic='number min max fallback value start_value points weights lengths offset features domain_low domain_high rate bandwidth latency half bytes flop seconds bias low high
predicted measured numbers list score node_price_per_hour'
#   statistics of fits: variances in squares of the fitted unit, relative errors, logarithms, load averages
statistics='interval_score test_loss alpha_variance beta_variance covariance log_times max_ape median_ape p90_ape one_factor_median_ape one_factor_p90_ape load_before load_after load_average'
#   parameters of fits, in the unit of whatever is fitted, and figures of decisions
fits='x y prior prior_sigma residuals objective smallest refresh covariate variance mean mean_variance row_variance values all_values sensitivity
interval_ratio_median rank_correlation'
unitless=$(sed -nE 's|/\*.*||; /[()]/d; s/^ +(const )?double ([^;]*);.*/\2/p' $(headers $rooms serve) | tr ',' '\n' | sed -E 's/[][*]|\[[^]]*\]//g; s/ //g; s/\[.*//' |
    sort -u | grep -vE '(^|_)(s|us|s2|us2|bytes|flop|count|flop_per_s|bytes_per_s|samples_per_s|samples_per_s_per_device|samples_per_iteration|s_per_byte|bytes_per_sample|elements|elements_per_sample|samples|hz|w|j|frac|scale|ratio|pct|log|s_per_sample|workers)$' |
    while read -r name; do case " $(echo $counts $factors $generic $statistics $fits $money $limits) " in *" $name "*) ;; *) echo "$name" ;; esac; done)
rule 'doubles in headers carry a unit' "$unitless"

# Columns alone select systems and releases: no C source holds a commit, or a row's id, source or words for its machine, or reads notes.
column() { # column NAME FILE...: the cells of that column, each once
    name=$1
    shift
    awk -v name="$name" '
        function cells(line, out,    i, n, c, quoted) {
            split("", out)
            for (n = i = 1; i <= length(line); i++) {
                c = substr(line, i, 1)
                if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) n++
                else out[n] = out[n] c
            }
            return n
        }
        FNR == 1 { wanted = 0; for (k = cells($0, header); k > 0; k--) if (header[k] == name) wanted = k; next }
        wanted && cells($0, cell) && !(cell[wanted] in seen) { seen[cell[wanted]] = 1; if (cell[wanted] != "") print cell[wanted] }' "$@"
}
tables() { basename -a -s .csv data/runs/*.csv data/unseen/*.csv data/collectives/*.csv; }
published() {
    column id data/runs/*.csv data/unseen/*.csv
    column source data/collectives/*.csv | sed -n 's/@.*//p' # a repository without its commit
    column source data/runs/*.csv data/unseen/*.csv data/collectives/*.csv
    column system_as_published data/collectives/*.csv
    # names of machines and boards: words of five characters and more with a digit
    column system_as_published data/collectives/*.csv | tr -s ' ,;:()' '\n' | grep -E '[A-Za-z].*[0-9]|[0-9].*[A-Za-z]' | grep -E '.{5}' | LC_ALL=C sort -u
}
code="$(sources $rooms serve) dlmodel.c"
strings=$(grep -noE '"([^"\\]|\\.)*"' $code | grep -vE ':"[^"]*\.h"$')
# What ids begin with, as a whole string, and names of tables; commands name tables in examples of their help.
parts() {
    column id data/runs/*.csv data/unseen/*.csv | sed -E 's/[0-9]+.*//' | grep -E '...' | sed 's/.*/:"&"/'
}
rule 'C knows no published row' "$(
    names=$(mktemp)
    published > "$names"
    printf '%s\n' "$strings" | grep -wFf "$names"
    parts > "$names"
    printf '%s\n' "$strings" | grep -Ff "$names"
    tables | grep '[_0-9]' > "$names"
    printf '%s\n' "$strings" | grep -vE '(^|/)cmd_[a-z]*\.c:' | grep -wFf "$names"
    rm -f "$names"
    # columns that name a row or its publication group rows; nothing is compared with them
    grep -nE 'str(n?cmp|n?casecmp|str|casestr)\([^;]*(DL_RUN_(ID|SOURCE)|"(id|source)"|[.>](id|source)\b)[^;"(]*, *"[^"]+' $code
    printf '%s\n' "$strings" | grep -P '[":@ ](?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}[" ;,)]'
    grep -nE 'dl_csv_column\([^)]*"(notes|system_as_published)"|[.>]notes, *"|str(n?cmp|str|casestr)\([^)]*(\bnotes|as_published)' $code
)"

# The same for data: what selects a system, a release or a constant is a name or a version, no row, publication, commit or file.
selectors() { # what chooses: versions, where and names of releases, aliases, keys of constants
    find data -name '*.json' -not -path 'data/kernels/*' -print0 | xargs -0 awk '
        /"(versions|aliases)": *\[/ { list = 1 }
        list || /"(where|alias|key|workloads|name)":/ || where { print FILENAME ": " $0 }
        /"where": *\{/ { where = 1 }
        /\]/ { list = 0 }
        /\}/ { where = 0 }'
}
rule 'data selects nothing by a published row or a commit' "$(
    names=$(mktemp)
    { column id data/runs/*.csv data/unseen/*.csv; column source data/runs/*.csv data/unseen/*.csv data/collectives/*.csv; tables | grep '[_0-9]'; } > "$names"
    selectors | grep -wFf "$names"
    rm -f "$names"
    selectors | grep -P '[":@ ](?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}[" ;,)]'
)"

# The Makefile has it; documents and recipes of others cannot read it there.
rule 'one version' "$(
    version=$(sed -n 's/^VERSION := //p' Makefile)
    for claim in CITATION.cff:"version: $version" debian/changelog:"dlmodel ($version)" CHANGELOG.md:"## $version" \
        packaging/apptainer/dlmodel.def:"dlmodel-$version.tar.gz" packaging/apptainer/dlmodel.def:"Version $version" \
        packaging/spack/packages/dlmodel/package.py:"version(\"$version\")" packaging/easybuild/dlmodel-*.eb:"version = '$version'"; do
        file=${claim%%:*}
        grep -qF "${claim#*:}" $file || printf '%s: expected %s\n' "$file" "${claim#*:}"
    done
)"

long=$(wc -l $(sources $rooms serve) dlmodel.c | awk '$1 > 500 && $2 != "total" { print $2 ": " $1 " lines" }')
rule 'files stay under 500 lines' "$long"
rule 'lines stay within 100 columns' "$(everything | LC_ALL=C.UTF-8 xargs grep -nE '^.{101,}' | cut -d : -f 1,2)"
if command -v python3 > /dev/null 2>&1; then
    # More is reported with its reason: "Kept whole: REASON" in the comment above the function.
    rule 'functions stay within 60 lines and a complexity of 20' "$(python3 tests/complexity.py $(everything))"
else
    echo 'skip functions stay within 60 lines and a complexity of 20: no python3 (Debian package python3)'
fi
# Another release formats otherwise.
case $(clang-format --version 2> /dev/null) in
*'version 14.'*) rule 'clang-format' "$(everything | xargs -P "$cores" -n 40 clang-format --dry-run -Werror 2>&1 | grep 'error:' | cut -d ' ' -f 1 | sort -u)" ;;
*) echo 'skip clang-format: no clang-format 14 (Debian package clang-format-14)' ;;
esac

if command -v shellcheck > /dev/null 2>&1; then
    scripts() { find tests tools .ci slurm packaging \( -name "*.sh" -o -path tests/run -o -path tools/gpu_kit -o -path .ci/run \); }
    rule 'shell scripts' "$(scripts | xargs -P "$cores" -n 8 shellcheck -x -S warning -e SC1091 2>&1)"
    rule 'variables of shell scripts are quoted' "$(scripts | xargs -P "$cores" -n 8 shellcheck -x -i SC2086,SC2046,SC2048,SC2068,SC2206,SC2115 2>&1)"
else
    echo 'skip shell scripts: no shellcheck (Debian package shellcheck)'
fi
if [ "${1-}" = all ]; then
    if command -v cppcheck > /dev/null 2>&1; then
        rule 'cppcheck' "$(cppcheck -q --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem --std=c11 -I. model process import predict fits plots library calibrate/cmd_calibrate.c calibrate/plan calibrate/run calibrate/fits calibrate/profile calibrate/report slurm serve dlmodel.c 2>&1)"
    else
        echo 'skip cppcheck: none (Debian package cppcheck)'
    fi
    if command -v clang-tidy > /dev/null 2>&1; then
        # Left out, each with its reason:
        #   easily-swappable-parameters, narrowing-conversions, reserved-identifier: style; -Wconversion judges conversions
        #   implicit-widening, misplaced-widening-cast: products of what is checked to be small; int64_t printed as long long
        #   macro-parentheses: rows of schema tables are macros whose arguments are names of members
        #   sizeof-expression: arrays of pointers are allocated by the size of a pointer
        #   FloatLoopCounter: counts of ranks and samples are doubles, whole below 2^53
        #   DeprecatedOrUnsafeBufferHandling: asks for memcpy_s, which no C library here has; Padding: tables are in reading order
        checks='-*,clang-analyzer-*,bugprone-*,-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-reserved-identifier'
        checks="$checks,-bugprone-implicit-widening-of-multiplication-result,-bugprone-misplaced-widening-cast,-bugprone-macro-parentheses"
        checks="$checks,-bugprone-sizeof-expression,-clang-analyzer-security.FloatLoopCounter"
        checks="$checks,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,-clang-analyzer-optin.performance.Padding"
        # A process for each file: in one for all, the analyzer takes every va_list after the first file's for uninitialized.
        rule 'clang-tidy' "$(find $rooms serve dlmodel.c -name '*.c' -not -path 'calibrate/probes/*' |
            xargs -P "$(nproc)" -I FILE clang-tidy --quiet --checks="$checks" FILE -- -std=c11 -D_POSIX_C_SOURCE=200809L -DDL_MICROHTTPD='""' -I. 2> /dev/null | grep -E 'warning:|error:')"
    else
        echo 'skip clang-tidy: none (Debian package clang-tidy-14)'
    fi
fi
exit $broken
