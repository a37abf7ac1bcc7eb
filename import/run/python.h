/* python.h - the part of Python that configurations are written in: functions that build objects
 * from literals, change their members and return them. Calls of what the file does not define stay
 * what they are: a class with its arguments. Nothing else is evaluated, nothing is executed. */
#ifndef DL_IMPORT_RUN_PYTHON_H
#define DL_IMPORT_RUN_PYTHON_H

#include "import/run/imported_run.h"

enum dl_py_kind {
    DL_PY_UNKNOWN, /* text: its source */
    DL_PY_NONE,
    DL_PY_BOOL,
    DL_PY_NUMBER,
    DL_PY_TEXT,
    DL_PY_LIST,   /* members without names; of tuples and sets too */
    DL_PY_DICT,   /* members with the keys that are texts */
    DL_PY_OBJECT, /* text: "Trainer.Config"; members: arguments, those by position without names */
    DL_PY_PATH    /* text: a name that the file does not define, "Trainer.Config" */
};
struct dl_py_member {
    const char *name; /* NULL: by position */
    struct dl_py_value *value;
    struct dl_py_member *next;
};
struct dl_py_value {
    enum dl_py_kind kind;
    double number; /* of BOOL 0 or 1 */
    const char *text, *path;
    int line;
    struct dl_py_member *members;
};

/* The value of the variable `name` of the module, or what its function without arguments returns;
 * NULL: of the only function that can be called so and returns an object. Modules of configurations
 * that the file imports are read where they are files next to it or above. DL_ERR_INPUT: no such
 * name, syntax that is not read, too long. */
enum dl_code dl_py_evaluate(const struct dl_run_source *source, const char *name,
                            struct dl_arguments *notes, struct dl_py_value **out,
                            const char **name_out, struct dl_err *err);

/* Whether an object is that of a class, and not what a function returns that the file does not
 * define: names of classes begin with a capital. */
bool dl_py_is_instance(const struct dl_py_value *value);
/* NULL: none. */
struct dl_py_value *dl_py_member(const struct dl_py_value *object, const char *name);
/* The n-th argument by position, from 0; NULL: none. */
struct dl_py_value *dl_py_argument(const struct dl_py_value *object, int n);

#endif
