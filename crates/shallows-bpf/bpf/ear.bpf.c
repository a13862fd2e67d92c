/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* EAR (Zeng et al., APNet 2017, §4.1): the fraction of bytes that were marked or late, or both. */
#include "control.h"

CONTROLLER("shl_ear", MARKS | DELAY | FRACTION, true,
	   TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN);
