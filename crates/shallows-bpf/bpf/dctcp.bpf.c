/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DCTCP (RFC 8257): the fraction of marked bytes. */
#include "control.h"

CONTROLLER("shl_dctcp", MARKS | FRACTION, true, TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN);
