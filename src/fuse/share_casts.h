/* Casts to a wider type that several kernels read. */
#ifndef O3_FUSE_SHARE_CASTS_H
#define O3_FUSE_SHARE_CASTS_H

#include "fuse/group.h"

/* A cast from a narrower float that |groups| makes a kernel of its own, though elementwise ops and reductions
 * read it, is cloned for each of these: each kernel then reads the narrower value, and none stores the wider
 * one. |changed|: there were such casts; graph and groups no longer hold. */
void o3_fuse_share_casts(const o3_groups_t *groups, bool *changed);

#endif
