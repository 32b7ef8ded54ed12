/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/faults.h - misbehaving on purpose, for tests of clients
 *
 * --faults takes a comma separated list, or @FILE with one in it, read again at SIGHUP; N counts requests or events over the server's life:
 *   429-every=N        every Nth API request is refused with 429 and Retry-After: 1
 *   500-every=N        every Nth API request is refused with 500
 *   503-every=N        every Nth API request is refused with 503, without Retry-After
 *   drop-every=N       every Nth API request is not looked at: its connection is cut
 *   410-every=N        every Nth watch starts with ERROR 410 Expired
 *   drop-watch-every=N after every Nth watch event the connection is cut
 *   truncate-every=N   every Nth API reply with a body is cut in the middle
 *   lose-every=N       every Nth write is done, but the connection is cut instead of answered
 *   delay-ms=N         every API request waits N milliseconds first
 *   bind-404-every=N   every Nth POST pods/NAME/binding is answered 404, and nothing happens;
 *                      likewise bind-201-every, bind-409-every, bind-410-every, bind-422-every
 *   bind-late-ms=N     a binding waits N milliseconds (delay-ms does not count for it), then takes
 *                      effect, even when its client has left
 *   bind-answer-ms=N   a binding takes effect, and is answered N milliseconds later
 * The log tells of each binding that is held, applied without its client, or answered falsely.
 */
#ifndef BH_SIM_FAULTS_H
#define BH_SIM_FAULTS_H

#include "simulator/server/req.h"

struct bh_sim_faults;
/* 0 or -EINVAL with err. spec NULL or "": *ret_f = NULL. */
int bh_sim_faults_parse(const char *spec, struct bh_sim_faults **ret_f, struct bh_err *err);
void bh_sim_faults_free(struct bh_sim_faults *f);

/* All of these only with s->faults set. true = it happened. */
bool bh_sim_fault_before(struct bh_sim_req *r); /* answered or waiting */
bool bh_sim_fault_reply(struct bh_sim_req *r, int code, const char *content_type, const void *p,
                        size_t n); /* cut, lost or held */
/* At the end of the server, after its clients: held bindings do not happen any more. */
void bh_sim_faults_drop_holds(struct bh_sim *s);
bool bh_sim_fault_drop_watch(struct bh_sim *s);
bool bh_sim_fault_expire(struct bh_sim *s);

#endif
