/* python_internal.h - shared by python_lex.c, python_expression.c and python_run.c. */
#ifndef DL_IMPORT_RUN_PYTHON_INTERNAL_H
#define DL_IMPORT_RUN_PYTHON_INTERNAL_H

#include "import/run/python.h"

enum { DL_PY_STEPS = 2000000, DL_PY_NESTING = 64 };
enum dl_py_token_kind { DL_PY_END, DL_PY_NAME, DL_PY_DIGITS, DL_PY_STRING, DL_PY_OPERATOR };
struct dl_py_token {
    enum dl_py_token_kind kind;
    bool starts;      /* a logical line, whose indentation is `indent` */
    const char *text; /* of strings the decoded one; NULL: formatted (f"...") */
    int line, column, indent;
};

struct dl_py_variable {
    const char *name;
    struct dl_py_value *value; /* NULL: a function at token `def` */
    int def;
    struct dl_py_variable *next;
};
struct dl_py_import {
    const char *name, *module, *original;
    struct dl_py_import *next;
};
struct dl_py_module {
    const char *path;
    struct dl_py_token *tokens; /* ended by END */
    int count;
    struct dl_py_variable *globals;
    struct dl_py_import *imports;
    struct dl_py_module *next;
};

/* State of one evaluation. */
struct dl_py {
    const struct dl_run_source *source;
    struct dl_arena *arena;
    struct dl_err *err;
    struct dl_arguments *notes;
    struct dl_py_module *modules;
    int module_count;
    long steps;
    int depth;
};
/* Where a part of a module is read. */
struct dl_py_frame {
    struct dl_py *py;
    struct dl_py_module *module;
    struct dl_py_variable *locals;
    int at, stop; /* tokens */
};

/* DL_ERR_INPUT with line and column: an open string or bracket, a character without meaning. */
enum dl_code dl_py_tokens(struct dl_py *py, const char *text, size_t length,
                          struct dl_py_module *out);

struct dl_py_value *dl_py_new(struct dl_py *py, enum dl_py_kind kind, const char *text, int line);
void dl_py_append(struct dl_py *py, struct dl_py_value *to, const char *name,
                  struct dl_py_value *value);
/* The same with another value where there is a member of that name. */
void dl_py_set(struct dl_py *py, struct dl_py_value *object, const char *name,
               struct dl_py_value *value);

const struct dl_py_token *dl_py_peek(const struct dl_py_frame *f);
bool dl_py_is(const struct dl_py_frame *f, const char *text);
/* Passes over an operator or word where it is next. */
bool dl_py_take(struct dl_py_frame *f, const char *text);
enum dl_code dl_py_expected(const struct dl_py_frame *f, const char *what);
struct dl_py_variable *dl_py_find(struct dl_py_variable *list, const char *name);

enum dl_code dl_py_expression(struct dl_py_frame *f, struct dl_py_value **out);
/* A name, literal or bracket, with its members, calls and subscripts. */
enum dl_code dl_py_atom(struct dl_py_frame *f, struct dl_py_value **out);
/* With commas: a tuple. */
enum dl_code dl_py_expressions(struct dl_py_frame *f, struct dl_py_value **out);
/* The call of a function that a module defines; *known false: none does. */
enum dl_code dl_py_call(struct dl_py_frame *f, const struct dl_py_value *object, bool *known,
                        struct dl_py_value **out);
/* Whether a condition holds; what is not known is false, with a note. */
bool dl_py_holds(struct dl_py_frame *f, const struct dl_py_value *condition, int line);

#endif
