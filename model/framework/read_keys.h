/* read_keys.h - which keys of a framework's file something reads: those that no behaviour lists or
 * owns (dl_framework_behaviour.keys, .fields), and those of its behaviour. A key that nothing reads
 * is refused in a file and after --set, where it would silently do nothing. */
#ifndef DL_MODEL_FRAMEWORK_READ_KEYS_H
#define DL_MODEL_FRAMEWORK_READ_KEYS_H

#include "model/framework/framework.h"

/* Whether a key, as --set takes it (perhaps without its unit), is one that the framework does not
 * read. False of keys that a framework's file does not have. */
bool dl_framework_ignores(const struct dl_framework *framework, const char *key);

/* The behaviours that read a key, "tensor-fusion, central-weights"; NULL: not only some do. */
const char *dl_framework_key_readers(const char *key, struct dl_arena *arena);

/* DL_ERR_INPUT: the file, or one of its releases, sets a key that its behaviour does not read. */
enum dl_code dl_framework_keys_check(const struct dl_framework *framework,
                                     const struct dl_json *doc, struct dl_arena *arena,
                                     struct dl_err *err);

#endif
