/* page_data.h - the files of the page, inside the program. */
#ifndef DL_SERVE_PAGE_DATA_H
#define DL_SERVE_PAGE_DATA_H

#include <stddef.h>

struct dl_page_file {
    const char *path, *media;
    const char *begin, *end;
};
extern const struct dl_page_file dl_page_files[]; /* ended by path NULL */

#endif
