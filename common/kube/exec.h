/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel protocol of pods/exec (v5.channel.k8s.io) as the client sees it: a message begins
 * with the number of its channel, and the last message on EXEC_ERROR is a Status that says how the
 * process ended. Pure parsers, no I/O: messages may arrive in pieces, cut anywhere.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define EXEC_SUBPROTOCOL "v5.channel.k8s.io"
#define EXEC_STATUS_MAX (64 * 1024)

typedef enum ExecChannel {
    EXEC_STDIN = 0,
    EXEC_STDOUT = 1,
    EXEC_STDERR = 2,
    EXEC_ERROR = 3,
    EXEC_RESIZE = 4,
    EXEC_CLOSE = 255, /* client to server: the next byte names the channel that ends */
} ExecChannel;

/* Ends stdin: send these two bytes. */
extern const char exec_close_stdin[2];

typedef struct ExecDemux {
    bool in_message;
    int channel; /* -1: its byte has not arrived */
    Buf status;  /* what came on EXEC_ERROR */
} ExecDemux;

#define EXEC_DEMUX_INIT ((ExecDemux){.channel = -1, .status = BUF_INIT(EXEC_STATUS_MAX)})

/* Output of the process; never empty. */
typedef void (*ExecDataFn)(ExecChannel channel, const char *data, size_t len, void *userdata);

/* A piece of a message. first and last as in WsHandlers. Empty messages are normal: each channel
 * opens with one. ERROR_INVALID: a channel the server must not write to; ERROR_TOO_LARGE: a Status
 * beyond EXEC_STATUS_MAX. */
int exec_demux_feed(ExecDemux *d, const char *data, size_t len, bool first, bool last,
                    ExecDataFn fn, void *userdata, Error **error);
void exec_demux_done(ExecDemux *d);

typedef struct ExecStatus {
    bool success;
    int exit_code; /* -1 where the Status has none */
    char *reason;  /* "NonZeroExitCode", "InternalError", …; may be NULL */
    char *message; /* may be NULL */
} ExecStatus;

/* The Status of EXEC_ERROR. ERROR_INVALID where it is none; *ret is untouched then. */
int exec_status_parse(const char *text, size_t len, ExecStatus *ret, Error **error);
void exec_status_done(ExecStatus *s);
