#!/usr/bin/env python3
"""What config/rbac.yaml grants, against what an API server's audit log says was asked for.

usage: rbac_check.py RULES.json AUDIT.log

RULES.json: the objects of config/rbac.yaml, one JSON value after the other. Prints, one a line, each request that
its user may not make, each request that system:kube-scheduler might not make, and each right that nobody used and
that is not in UNUSED; exit status 1 if there is any. Watches stand in no audit log: whoever lists a kind, watches
it, but for single objects that are read by name.
"""
import collections
import json
import sys

R = ['get', 'list', 'watch']


def rule(groups, resources, verbs, names=None):
    return {'apiGroups': groups, 'resources': resources, 'verbs': verbs, 'resourceNames': names or []}


# Bootstrap roles of a cluster that config/rbac.yaml refers to.
DELEGATOR = [rule(['authentication.k8s.io'], ['tokenreviews'], ['create']),
             rule(['authorization.k8s.io'], ['subjectaccessreviews'], ['create'])]
READER = [rule([''], ['configmaps'], R, ['extension-apiserver-authentication'])]
# What the identity of kube-scheduler has in a fresh cluster of 1.36: (namespace or None, rules).
KUBE_SCHEDULER = [
    (None, DELEGATOR + [
        rule(['', 'events.k8s.io'], ['events'], ['create', 'patch', 'update']),
        rule(['coordination.k8s.io'], ['leases'], ['create']),
        rule(['coordination.k8s.io'], ['leases'], ['get', 'list', 'update', 'watch'], ['kube-scheduler']),
        rule(['coordination.k8s.io'], ['leasecandidates'], R + ['create', 'delete', 'deletecollection', 'patch', 'update']),
        rule([''], ['nodes', 'namespaces', 'services', 'replicationcontrollers', 'persistentvolumes',
                    'persistentvolumeclaims'], R),
        rule([''], ['pods'], R + ['delete']),
        rule([''], ['pods/binding', 'bindings'], ['create']),
        rule([''], ['pods/status'], ['patch', 'update']),
        rule([''], ['pods/finalizers'], ['update']),
        rule(['apps', 'extensions'], ['replicasets'], R),
        rule(['apps'], ['statefulsets'], R),
        rule(['policy'], ['poddisruptionbudgets'], R),
        rule(['storage.k8s.io'], ['csinodes', 'csidrivers', 'csistoragecapacities', 'volumeattachments'], R),
        rule(['resource.k8s.io'], ['deviceclasses', 'resourceslices'], R),
        rule(['resource.k8s.io'], ['resourceclaims', 'resourceclaims/status'], R + ['patch', 'update']),
        rule(['resource.k8s.io'], ['resourceclaims'], ['create', 'delete']),
        rule(['resource.k8s.io'], ['resourceclaims/binding'], ['patch', 'update']),
        # with gate GenericWorkload
        rule(['scheduling.k8s.io'], ['podgroups'], R),
        rule(['scheduling.k8s.io'], ['podgroups/status'], ['patch', 'update']),
        # system:volume-scheduler
        rule([''], ['persistentvolumes', 'persistentvolumeclaims'], R + ['patch', 'update']),
        rule(['storage.k8s.io'], ['storageclasses'], R)]),
    ('kube-system', READER + [  # and system::leader-locking-kube-scheduler
        rule(['coordination.k8s.io'], ['leases', 'leasecandidates'], R + ['create', 'update'])]),
]
# Rights that a run of rbac.sh need not use: (user, namespace, group, resource, verb) with '*' for any, and why they are there.
LOOK = 'a write whose outcome is unknown is looked up, which takes a fault at the right moment'
UNUSED = {
    ('berth:watcher', '*', '*', '*', 'get'): 'get, list and watch go together everywhere, kube-scheduler has all three; today nothing is read one by one',
    ('berth:watcher', 'kube-system', '*', 'events', 'patch'): 'a LeaderElection event that is repeated',
    ('berth:watcher', 'kube-system', 'events.k8s.io', 'events', '*'): 'either API of events may be the one that a server has',
    ('berth:binder', '*', '', 'events', '*'): 'either API of events may be the one that a server has',
    ('berth:binder', '*', '*', 'events', 'patch'): 'an event that is repeated becomes a series',
    ('berth:binder', '*', '', 'pods', 'get'): LOOK,
    ('berth:binder', '*', '', 'persistentvolumes', 'get'): LOOK,
    ('berth:binder', '*', '', 'persistentvolumeclaims', 'get'): LOOK,
    ('berth:binder', '*', 'resource.k8s.io', 'resourceclaims', 'get'): LOOK,
    ('berth:binder', '*', 'resource.k8s.io', 'resourceclaims', 'delete'): 'a claim for extended resources whose pod went before it was bound',
    ('berth:binder', '*', 'resource.k8s.io', 'resourceclaims/binding', 'patch'):
        'of 1.36: a server checks it beside resourceclaims/status when an allocation changes',
    ('berth:watcher', '*', 'scheduling.k8s.io', 'podgroups', '*'): 'of gate GenericWorkload, which is off',
    ('berth:binder', '*', 'scheduling.k8s.io', 'podgroups/status', 'patch'): 'of gate GenericWorkload, which is off',
    ('berth:front', '*', '*', 'configmaps', '*'): 'read by name; list and watch come with the cluster\'s own role',
}


def values(path):
    text = open(path, encoding='utf-8').read()
    at = 0
    while at < len(text):
        value, at = json.JSONDecoder().raw_decode(text, at)
        yield value
        at += len(text[at:]) - len(text[at:].lstrip())


def grants(path):
    """user -> [(namespace or None, rules)]"""
    objects = list(values(path))
    roles = {('ClusterRole', 'system:auth-delegator'): DELEGATOR,
             ('Role', 'extension-apiserver-authentication-reader'): READER}
    roles.update({(o['kind'], o['metadata']['name']): o['rules'] for o in objects if o['kind'].endswith('Role')})
    out = collections.defaultdict(list)
    for o in objects:
        if not o['kind'].endswith('Binding'):
            continue
        rules = roles.pop((o['roleRef']['kind'], o['roleRef']['name']))
        users = {s['name'].replace(':', '-') for s in o['subjects']}
        assert len(users) == 1 and len(o['subjects']) == 2, f'{o["metadata"]["name"]}: one user and its service account'
        for s in o['subjects']:
            if s['kind'] == 'User':
                out[s['name']].append((o['metadata'].get('namespace'), rules))
    assert not roles, f'bound to nobody: {sorted(roles)}'
    return out


def allows(granted, request):
    """The first right that allows it: (namespace, group, resource, verb)."""
    ns, group, resource, verb, name = request
    for of, rules in granted:
        if of is not None and of != ns:
            continue
        for r in rules:
            names = r.get('resourceNames') or []
            if (group in r['apiGroups'] and resource in r['resources'] and verb in r['verbs']
                    and (not names or name in names)):
                return of, group, resource, verb
    return None


def requests(path):
    """(user, namespace, group, resource, verb, name); a list is a watch, too"""
    out = collections.Counter()
    for line in open(path, encoding='utf-8'):
        e = json.loads(line)
        ref = e.get('objectRef')
        if not ref:
            continue
        resource = ref['resource'] + ('/' + ref['subresource'] if ref.get('subresource') else '')
        for verb in [e['verb']] + (['watch'] if e['verb'] == 'list' else []):
            out[e['user']['username'], ref.get('namespace', ''), ref.get('apiGroup', ''), resource, verb,
                ref.get('name', '')] += 1
    return out


def excused(user, right):
    namespace, group, resource, verb = right
    return any(all(p in ('*', v) for p, v in zip(key, (user, namespace or '*', group, resource, verb)))
               for key in UNUSED)


def main(rules, audit):
    granted, wrong, used, asked = grants(rules), [], collections.defaultdict(set), requests(audit)
    users = collections.Counter()
    for (user, *request), n in asked.items():
        if not user.startswith('berth:') and not user.startswith('system:'):
            continue  # the test's own kubectl
        users[user] += n
        right = allows(granted[user], request)
        if right:
            used[user].add(right)
        else:
            wrong.append(f'{user} may not: {request}')
        if not allows(KUBE_SCHEDULER, request):
            wrong.append(f'system:kube-scheduler may not what {user} asked for: {request}')
    for user, list_ in granted.items():
        if not users[user]:
            wrong.append(f'{user} asked for nothing')
        for ns, rs in list_:
            for r in rs:
                for right in ((ns, g, x, v) for g in r['apiGroups'] for x in r['resources'] for v in r['verbs']):
                    if right not in used[user] and not excused(user, right):
                        wrong.append(f'{user} has not used {right}')
                    if not allows(KUBE_SCHEDULER, (ns or 'any',) + right[1:] + ((r.get('resourceNames') or ['any'])[0],)):
                        wrong.append(f'{user} has what system:kube-scheduler has not: {right}')
    print('\n'.join(wrong) if wrong else ', '.join(f'{u}: {n} requests' for u, n in sorted(users.items())))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
