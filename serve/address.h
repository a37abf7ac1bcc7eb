/* address.h - the address to listen on. */
#ifndef DL_SERVE_ADDRESS_H
#define DL_SERVE_ADDRESS_H

#include <stdbool.h>

#include "model/core/status.h"

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080"; opens a listening socket in *fd. DL_ERR_USAGE:
 * invalid address; DL_ERR_SYSTEM: an error of the system. */
enum dl_code dl_address_listen(const char *text, int *fd, struct dl_err *err);

#endif
