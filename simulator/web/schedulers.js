// SPDX-License-Identifier: Apache-2.0
//
// schedulers.js - which schedulers serve pods here; pods that name another one in spec.schedulerName
//
// Such a pod is in no queue and has no decision, so the screens show the reason themselves. The names
// are those of the profiles that the scheduler runs with (GET /berth/v1/overview).
import {fetchJSON, h, note, to} from './lib.js';

let profiles = null;  // null: not known
export function learnProfiles(overview) { profiles = overview.scheduler?.profiles || null; }
export const askProfiles = async () => learnProfiles(await fetchJSON('/berth/v1/overview', {timeout: 8000}).catch(() => ({})));

// p: a short row of a pod
export const isUnserved = (p) => Boolean(profiles) && p.phase === 'Pending' && !p.node && !p.deleting && !profiles.includes(p.scheduler);
export const isUnservedPod = (o) => isUnserved({phase: o.status?.phase, node: o.spec?.nodeName, deleting: Boolean(o.metadata.deletionTimestamp), scheduler: o.spec?.schedulerName});
export const unservedReason = (name) => `no scheduler here serves spec.schedulerName "${name}"`;

const OWNERS = {
  ReplicaSet: ['apps/v1', 'replicasets'],
  Deployment: ['apps/v1', 'deployments'],
  StatefulSet: ['apps/v1', 'statefulsets'],
  DaemonSet: ['apps/v1', 'daemonsets'],
  Job: ['batch/v1', 'jobs']
};

// Of the controllers above an object the highest one: {kind, name, path, object, page}, null without one.
export async function topOwner(object) {
  let at = object, found = null;
  for (let i = 0; i < 3; i++) {
    const ref = ((at.metadata || {}).ownerReferences || []).find((r) => r.controller && OWNERS[r.kind]);
    if (!ref) break;
    const [api, plural] = OWNERS[ref.kind], path = `/apis/${api}/namespaces/${encodeURIComponent(object.metadata.namespace)}/${plural}/${encodeURIComponent(ref.name)}`;
    at = await fetchJSON(path);
    found = {kind: ref.kind, name: ref.name, path, object: at, page: to(plural, object.metadata.namespace, ref.name)};
  }
  return found;
}

// schedulerName is immutable: the template of the owner is patched, a pod without one is created again.
async function patchTo(pod, name) {
  const {namespace, name: podName} = pod.metadata, owner = await topOwner(pod), spec = {schedulerName: name};
  const patch = JSON.stringify({spec: owner ? {template: {spec}} : spec});
  if (owner && owner.kind !== 'Job') return `kubectl patch ${owner.kind.toLowerCase()} ${owner.name} -n ${namespace} -p '${patch}'`;
  const [what, text] = owner ? [`job ${owner.name}`, patch] : [`pod ${podName}`, patch];
  return `kubectl get ${what} -n ${namespace} -o json | kubectl patch --local -f - -p '${text}' -o json | kubectl replace --force -f -`;
}

// pod: the object. tools(name): what stands beside the command, name being the scheduler it would have.
export function unservedNote(pod, tools) {
  const name = (profiles || [])[0], command = h('pre', {tabindex: '0'}, '');
  if (name) patchTo(pod, name).then((text) => command.append(text), (e) => command.append(`# ${e.message}`));
  return note(
      'warn', h('b', {}, `No scheduler here serves spec.schedulerName "${pod.spec.schedulerName}".`),
      h('p', {}, `The running configuration has ${name ? `the ${profiles.length === 1 ? 'profile' : 'profiles'} ${profiles.join(', ')}` : 'no profile of this name'}. `,
        'The pod is in no queue, and no decision about it is made. Add a profile of this name to the configuration, or give the pod a scheduler that runs:'),
      name ? command : null, name && tools ? tools(name) : null);
}
