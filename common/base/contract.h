/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contracts between callers and callees of this program: what a programmer gets wrong, never what
 * input gets wrong. They hold in release builds as well, where assert() does not; the expression
 * must have no side effects.
 */
#pragma once

#include "common/base/cleanup.h"

#define CONTRACT(expr) ((expr) ? (void)0 : contract_failed(#expr, __FILE__, __LINE__))

/* Writes one line to stderr and aborts. */
_noreturn_ void contract_failed(const char *expr, const char *file, int line);
