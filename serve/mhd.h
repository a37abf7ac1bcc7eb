/* mhd.h - libmicrohttpd, loaded when the service starts: linking it and its TLS library would delay
 * every other command by a millisecond. */
#ifndef DL_SERVE_MHD_H
#define DL_SERVE_MHD_H

#include <microhttpd.h>

#include "model/core/status.h"

/* The functions used, as X(name). */
#define DL_MHD_FUNCTIONS(X)                                                                        \
    X(MHD_add_response_header)                                                                     \
    X(MHD_create_response_from_buffer)                                                             \
    X(MHD_create_response_from_callback)                                                           \
    X(MHD_destroy_response)                                                                        \
    X(MHD_get_connection_info)                                                                     \
    X(MHD_get_connection_values)                                                                   \
    X(MHD_get_connection_values_n)                                                                 \
    X(MHD_get_daemon_info)                                                                         \
    X(MHD_get_timeout)                                                                             \
    X(MHD_lookup_connection_value)                                                                 \
    X(MHD_queue_response)                                                                          \
    X(MHD_quiesce_daemon)                                                                          \
    X(MHD_resume_connection)                                                                       \
    X(MHD_run)                                                                                     \
    X(MHD_start_daemon)                                                                            \
    X(MHD_stop_daemon)                                                                             \
    X(MHD_suspend_connection)

#define DL_MHD_MEMBER(name) __typeof__(name) *name;
struct dl_mhd {
    DL_MHD_FUNCTIONS(DL_MHD_MEMBER)
};
extern struct dl_mhd dl_mhd; /* filled by dl_mhd_load */

/* DL_ERR_BACKEND: the library is missing or lacks a function. */
enum dl_code dl_mhd_load(struct dl_err *err);

#endif
