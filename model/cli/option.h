/* option.h - command-line options as tables: one row gives parsing, --help, the man page and
 * completion.
 */
#ifndef DL_MODEL_CLI_OPTION_H
#define DL_MODEL_CLI_OPTION_H

#include "model/base/arena.h"
#include "model/base/json.h"
#include "model/base/units.h"

struct dl_option {
    const char *name;     /* long name without dashes */
    char letter;          /* short name, 0: none */
    const char *argument; /* "FILE", "N"; NULL: a flag */
    const char *group;    /* heading in the help */
    const char *help;     /* one line; ranges, units, default */
    bool repeatable;
};

enum { DL_MAX_POSITIONAL = 256, DL_MAX_REPEATS = 64 };

struct dl_options {
    /* NULL-terminated list of tables, each ended by name NULL */
    const struct dl_option *const *tables;
    struct dl_given {
        const struct dl_option *option;
        const char *value;
    } given[DL_MAX_REPEATS];
    int given_count;
    const char *positional[DL_MAX_POSITIONAL];
    int positional_count;
};

/* Parse argv[0..argc): "--name value", "--name=value", "-x value", "--" ends options. DL_ERR_USAGE
 * with a suggestion for an unknown option, a missing or surplus value, an option given twice that
 * is not repeatable. */
enum dl_code dl_options_parse(const struct dl_option *const *tables, int argc, char **argv,
                              struct dl_options *out, struct dl_err *err);

bool dl_option_given(const struct dl_options *options, const char *name);
/* as if it had not been given */
struct dl_options dl_options_without(const struct dl_options *options, const char *name);
/* last value, NULL when not given */
const char *dl_option_text(const struct dl_options *options, const char *name);
/* Typed values; absent ones leave *out as it is. Errors name the option, what was expected and what
 * was got. */
enum dl_code dl_option_number(const struct dl_options *options, const char *name, enum dl_unit unit,
                              double min, double max, double *out, struct dl_err *err);
enum dl_code dl_option_integer(const struct dl_options *options, const char *name, int64_t min,
                               int64_t max, int64_t *out, struct dl_err *err);
enum dl_code dl_option_choice(const struct dl_options *options, const char *name,
                              const char *const *choices, int *out, struct dl_err *err);

#endif
