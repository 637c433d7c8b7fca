/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon does to itself once, before it handles secrets or starts threads. */
#pragma once

/* No core files, no tracing by the same user (tokens are in this process's memory), no gain of
 * privileges through exec. Built with a leak checker the process stays traceable, because that
 * traces itself. */
void process_harden(void);
