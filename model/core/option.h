/* option.h - command-line options as tables. One row defines parsing, --help, the man page and
 * completion; it also gives type, unit and range of the value and the member that stores it, so a
 * new option is one row and one member. */
#ifndef DL_MODEL_CORE_OPTION_H
#define DL_MODEL_CORE_OPTION_H

#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/json.h"
#include "model/core/units.h"

enum dl_value_kind {
    DL_VALUE_UNBOUND, /* not stored: the command looks it up */
    DL_VALUE_TEXT,    /* const char * */
    DL_VALUE_WORD,    /* const char *, one of `choices` */
    DL_VALUE_CHOICE,  /* an enum or int: the index in `choices` */
    DL_VALUE_SET,     /* unsigned: a bit for each word of `choices` in a comma-separated list */
    DL_VALUE_FLAG,    /* bool */
    DL_VALUE_NUMBER,  /* double */
    DL_VALUE_INTEGER  /* int64_t */
};

/* Type of a value and the member that stores it. Offsets refer to the structure that the table's
 * options fill; given_at and word_at 0: not stored. */
struct dl_value {
    enum dl_value_kind kind;
    bool repeatable;
    const char *alias; /* former name, accepted for one release */
    enum dl_unit unit;
    double min, max;
    const char *const *choices; /* NULL-terminated */
    size_t at;
    size_t given_at;  /* offset of a bool: the option was given */
    const char *word; /* a word accepted instead of a number, e.g. "max" ... */
    size_t word_at;   /* ... and the bool that it sets */
    /* A choice that may be a comma-separated list of `members` instead: their bits go to the
     * unsigned at `members_at`, which any choice sets to 0, and the choice is `members_choice`. */
    const char *const *members;
    size_t members_at;
    int members_choice;
};

/* The offset of a member; comparing pointers makes the compiler check that its type is `type`. */
#define DL_OFFSET(structure, member, type)                                                         \
    (offsetof(structure, member) + 0 * sizeof((type *)0 == &((structure *)0)->member))
/* The same for an enum, which is stored as an int. */
#define DL_OFFSET_ENUM(structure, member)                                                          \
    (offsetof(structure, member) +                                                                 \
     0 * sizeof(char[sizeof(((structure *)0)->member) == sizeof(int) ? 1 : -1]))

/* Values for the last column of a row; NULL: the command looks the option up by name. `place` is a
 * structure and its member, as from `#define PLAN(member) struct dl_plan, member`; further members
 * of struct dl_value may follow: .min, .max, .unit, .choices, .alias. */
#define DL_GIVEN(place) .given_at = DL_OFFSET(place, bool)
#define DL_OR_WORD(text, place) .word = text, .word_at = DL_OFFSET(place, bool)
#define DL_VALUE(...)                                                                              \
    &(const struct dl_value) { __VA_ARGS__ }
#define DL_REPEATED DL_VALUE(.repeatable = true)
#define DL_TEXT(place) DL_VALUE(.kind = DL_VALUE_TEXT, .at = DL_OFFSET(place, const char *))
#define DL_FLAG(place) DL_VALUE(.kind = DL_VALUE_FLAG, .at = DL_OFFSET(place, bool))
#define DL_TEXT_OF(place, ...)                                                                     \
    DL_VALUE(.kind = DL_VALUE_TEXT, .at = DL_OFFSET(place, const char *), __VA_ARGS__)
#define DL_FLAG_OF(place, ...)                                                                     \
    DL_VALUE(.kind = DL_VALUE_FLAG, .at = DL_OFFSET(place, bool), __VA_ARGS__)
#define DL_WORD(place, ...)                                                                        \
    DL_VALUE(.kind = DL_VALUE_WORD, .at = DL_OFFSET(place, const char *), __VA_ARGS__)
#define DL_CHOICE(place, ...)                                                                      \
    DL_VALUE(.kind = DL_VALUE_CHOICE, .at = DL_OFFSET_ENUM(place), __VA_ARGS__)
#define DL_SET(place, ...)                                                                         \
    DL_VALUE(.kind = DL_VALUE_SET, .at = DL_OFFSET(place, unsigned), __VA_ARGS__)
#define DL_OR_MEMBERS(names, place, choice)                                                        \
    .members = names, .members_at = DL_OFFSET(place, unsigned), .members_choice = choice
#define DL_NUMBER(place, ...)                                                                      \
    DL_VALUE(.kind = DL_VALUE_NUMBER, .at = DL_OFFSET(place, double), __VA_ARGS__)
#define DL_INTEGER(place, ...)                                                                     \
    DL_VALUE(.kind = DL_VALUE_INTEGER, .at = DL_OFFSET(place, int64_t), __VA_ARGS__)

struct dl_option {
    const char *name;     /* long name without dashes */
    char letter;          /* short name, 0: none */
    const char *argument; /* "FILE", "N"; NULL: a flag */
    const char *group;    /* heading in the help */
    const char *help;     /* one line; ranges, units, default */
    const struct dl_value *value;
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
    void *owner; /* caller's data of a context within another program */
};

/* Parse argv[0..argc): "--name value", "--name=value", "-x value", "--" ends options. DL_ERR_USAGE
 * with a suggestion for an unknown option, a missing or surplus value, an option given twice that
 * is not repeatable. */
enum dl_code dl_options_parse(const struct dl_option *const *tables, int argc, char **argv,
                              struct dl_options *out, struct dl_err *err);

/* Stores each given option of `table` in the member of *target that its row names; members of
 * absent options keep their values. DL_ERR_USAGE names the option and what was expected. */
enum dl_code dl_options_bind(const struct dl_options *options, const struct dl_option *table,
                             void *target, struct dl_err *err);
/* The same for one value of another origin, such as a table's cell. */
enum dl_code dl_option_store(const struct dl_option *option, const char *text, void *target,
                             struct dl_err *err);
/* The same for a cell of a table, where a flag is "1" or "0". */
enum dl_code dl_option_store_cell(const struct dl_option *option, const char *text, void *target,
                                  struct dl_err *err);
bool dl_option_repeatable(const struct dl_option *option);

bool dl_option_given(const struct dl_options *options, const char *name);
/* The first of these options, words between spaces, that is given; NULL: none is. */
const char *dl_option_first(const struct dl_options *options, const char *names);
/* a copy without that option */
struct dl_options dl_options_without(const struct dl_options *options, const char *name);
/* last value, NULL when not given */
const char *dl_option_text(const struct dl_options *options, const char *name);
/* Typed values; an absent option leaves *out unchanged. Errors name the option, what was expected
 * and what was given. */
enum dl_code dl_option_number(const struct dl_options *options, const char *name,
                              const struct dl_value *range, double *out, struct dl_err *err);
enum dl_code dl_option_integer(const struct dl_options *options, const char *name, int64_t min,
                               int64_t max, int64_t *out, struct dl_err *err);
enum dl_code dl_option_choice(const struct dl_options *options, const char *name,
                              const char *const *choices, int *out, struct dl_err *err);

#endif
