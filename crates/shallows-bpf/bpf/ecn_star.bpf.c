/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ECN* (Wu et al., CoNEXT 2012): a mark halves the window; the echo is that of RFC 3168. */
#include "control.h"

CONTROLLER("shl_ecn_star", MARKS, false, TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN);
