/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Delay-based DCTCP (Zeng et al., APNet 2017, §3.1): the fraction of late bytes. */
#include "control.h"

CONTROLLER("shl_delay_dctcp", DELAY | FRACTION, false, TCP_CONG_NON_RESTRICTED);
