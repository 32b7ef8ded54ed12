/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/kubeconfig_out.c - a kubeconfig that leads to this server
 */
#include "simulator/server/kubeconfig_out.h"

#include "simulator/server/tree.h"

int bh_sim_kubeconfig_write(const char *path, const char *address, uint16_t port,
                            const char *ca_pem, const char *token, struct bh_err *err)
{
    struct bh_buf b = {0};
    bool v6 = strchr(address, ':') != NULL;
    /* Over TLS kubectl asks for a user name when it finds no credentials at all; a server that checks no
     * tokens takes any. */
    if (ca_pem && !token)
        token = "anyone";
    bh_buf_addf(&b,
                "apiVersion: v1\nkind: Config\ncurrent-context: berth\nclusters:\n- name: berth\n"
                "  cluster:\n    server: http%s://%s%s%s:%u\n",
                ca_pem ? "s" : "", v6 ? "[" : "", address, v6 ? "]" : "", port);
    if (ca_pem) {
        bh_buf_adds(&b, "    certificate-authority-data: ");
        bh_tree_add_base64(&b, ca_pem, strlen(ca_pem));
        bh_buf_addc(&b, '\n');
    } else { /* some client libraries refuse plain HTTP unless told that nothing is verified */
        bh_buf_adds(&b, "    insecure-skip-tls-verify: true\n");
    }
    bh_buf_adds(&b, "contexts:\n- name: berth\n  context:\n    cluster: berth\n    user: berth\n"
                    "users:\n- name: berth\n  user:");
    if (token) {
        bh_buf_adds(&b, "\n    token: ");
        bh_buf_add_json_str(&b, token, strlen(token));
        bh_buf_addc(&b, '\n');
    } else {
        bh_buf_adds(&b, " {}\n");
    }
    int rc = bh_write_file(path, b.p, b.n, 0600);
    bh_buf_fini(&b);
    return rc < 0 ? bh_err_set(err, rc, "cannot write kubeconfig %s: %s", path, strerror(-rc)) : 0;
}
