/* yaml.h - a YAML file as arguments: the path of each key, its value, its line; by libyaml. */
#ifndef DL_IMPORT_RUN_YAML_H
#define DL_IMPORT_RUN_YAML_H

#include "import/run/arguments.h"

/* Adds the values of the text; keys of nested mappings are joined by dots, elements of a list by
 * newlines. Interpolations of OmegaConf (${a.b}, ${.b}, ${multiply:a,b}, ${oc.env:A,b}) have their
 * values where the file decides them. DL_ERR_INPUT with line and column; DL_ERR_BACKEND: built
 * without libyaml. */
enum dl_code dl_yaml_read(const char *text, size_t length, struct dl_arguments *out,
                          struct dl_err *err);

#endif
