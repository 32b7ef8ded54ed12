// SPDX-License-Identifier: Apache-2.0
//
// templates.js - what "New" starts with, one for every kind, and the example cluster
//
// {n} in a template is the number of the copy, {n%3} the same modulo 3: edit.js fills them in.

const pod = (name, spec, meta = '') => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  namespace: default
${meta}spec:
${spec}`;
const container = (indent = 2, cpu = '100m', memory = '128Mi') => `containers:
- name: main
  image: registry.k8s.io/pause:3.10
  resources:
    requests:
      cpu: ${cpu}
      memory: ${memory}
`.replace(/^(?=.)/gm, ' '.repeat(indent));
const workload = (kind, name, more) => `apiVersion: apps/v1
kind: ${kind}
metadata:
  name: ${name}
  namespace: default
spec:
${more}  selector:
    matchLabels:
      app: ${name}
  template:
    metadata:
      labels:
        app: ${name}
    spec:
${container(6)}`;

export const NODE =
    ({name = 'node-{n}', zone = 'zone-{n%3}', cpu = '8', memory = '32Gi', pods = 110, extended = [], labels = []} =
         {}) => `apiVersion: v1
kind: Node
metadata:
  name: ${name}
  labels:
    kubernetes.io/hostname: ${name}
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    topology.kubernetes.io/zone: ${zone}
${labels.map((l) => `    ${l}\n`).join('')}status:
  allocatable:
    cpu: "${cpu}"
    memory: ${memory}
    ephemeral-storage: 100Gi
    pods: "${pods}"
${extended.map((e) => `    ${e}\n`).join('')}  capacity:
    cpu: "${cpu}"
    memory: ${memory}
    ephemeral-storage: 100Gi
    pods: "${pods}"
${extended.map((e) => `    ${e}\n`).join('')}  conditions:
  - type: Ready
    status: "True"
    reason: KubeletReady
`;

export const TEMPLATES = [
  {
    id: 'pod',
    kind: 'pods',
    group: 'Pods',
    title: 'Pod',
    text: pod('web-{n}', container(), '  labels:\n    app: web\n')
  },
  {
    id: 'pod-affinity',
    kind: 'pods',
    group: 'Pods',
    title: 'Pod with node affinity',
    text: pod('near-ssd-{n}', `  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - key: kubernetes.io/os
            operator: In
            values: [linux]
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 50
        preference:
          matchExpressions:
          - key: disk
            operator: In
            values: [ssd]
${container()}`)
  },
  {
    id: 'pod-anti',
    kind: 'pods',
    group: 'Pods',
    title: 'Pods apart from each other',
    text:
        pod('apart-{n}', `  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            app: apart
${container()}`,
            '  labels:\n    app: apart\n')
  },
  {
    id: 'pod-spread',
    kind: 'pods',
    group: 'Pods',
    title: 'Pods spread over zones',
    text:
        pod('spread-{n}', `  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector:
      matchLabels:
        app: spread
${container()}`,
            '  labels:\n    app: spread\n')
  },
  {
    id: 'pod-tolerations',
    kind: 'pods',
    group: 'Pods',
    title: 'Pod with tolerations',
    text: pod('gpu-{n}', `  tolerations:
  - key: dedicated
    operator: Equal
    value: gpu
    effect: NoSchedule
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources:
      requests:
        cpu: 500m
        memory: 1Gi
      limits:
        nvidia.com/gpu: 1
`)
  },
  {
    id: 'pod-priority',
    kind: 'pods',
    group: 'Pods',
    title: 'Pod with a priority',
    text: pod('urgent-{n}', `  priorityClassName: system-cluster-critical
${container(2, '2', '2Gi')}`)
  },
  {
    id: 'pod-gate',
    kind: 'pods',
    group: 'Pods',
    title: 'Pod behind a scheduling gate',
    text: pod('gated-{n}', `  schedulingGates:
  - name: example.com/quota
${container()}`)
  },
  {
    id: 'pod-volume',
    kind: 'pods',
    group: 'Pods',
    title: 'Pod with a volume claim',
    text: pod('data-{n}', `  volumes:
  - name: data
    persistentVolumeClaim:
      claimName: data-{n}
${container()}`)
  },
  {id: 'node', kind: 'nodes', group: 'Cluster', title: 'Node', text: NODE()},
  {
    id: 'node-gpu',
    kind: 'nodes',
    group: 'Cluster',
    title: 'Node with GPUs and a taint',
    text:
        NODE({name: 'gpu-{n}', cpu: '32', memory: '256Gi', extended: ['nvidia.com/gpu: "4"']})
            .replace(
                'status:\n', 'spec:\n  taints:\n  - key: dedicated\n    value: gpu\n    effect: NoSchedule\nstatus:\n')
  },
  {
    id: 'namespace',
    kind: 'namespaces',
    group: 'Cluster',
    title: 'Namespace',
    text: 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team-{n}\n'
  },
  {
    id: 'deployment',
    kind: 'deployments',
    group: 'Workloads',
    title: 'Deployment',
    text: workload('Deployment', 'web', '  replicas: 3\n')
  },
  {
    id: 'replicaset',
    kind: 'replicasets',
    group: 'Workloads',
    title: 'Replica set',
    text: workload('ReplicaSet', 'set', '  replicas: 3\n')
  },
  {
    id: 'statefulset',
    kind: 'statefulsets',
    group: 'Workloads',
    title: 'Stateful set',
    text: workload('StatefulSet', 'db', '  replicas: 3\n  serviceName: db\n')
  },
  {
    id: 'daemonset',
    kind: 'daemonsets',
    group: 'Workloads',
    title: 'Daemon set',
    text: workload('DaemonSet', 'agent', '')
  },
  {
    id: 'job',
    kind: 'jobs',
    group: 'Workloads',
    title: 'Job',
    text: `apiVersion: batch/v1
kind: Job
metadata:
  name: batch-{n}
  namespace: default
spec:
  completions: 4
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
${container(6)}`
  },
  {
    id: 'cronjob',
    kind: 'cronjobs',
    group: 'Workloads',
    title: 'Cron job',
    text: `apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
  namespace: default
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
${container(10)}`
  },
  {
    id: 'pvc',
    kind: 'persistentvolumeclaims',
    group: 'Storage',
    title: 'Volume claim',
    text: `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data-{n}
  namespace: default
spec:
  storageClassName: local
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 1Gi
`
  },
  {
    id: 'pv',
    kind: 'persistentvolumes',
    group: 'Storage',
    title: 'Volume',
    text: `apiVersion: v1
kind: PersistentVolume
metadata:
  name: volume-{n}
spec:
  storageClassName: local
  accessModes: [ReadWriteOnce]
  capacity:
    storage: 1Gi
  persistentVolumeReclaimPolicy: Delete
  hostPath:
    path: /data/volume-{n}
`
  },
  {
    id: 'storageclass',
    kind: 'storageclasses',
    group: 'Storage',
    title: 'Storage class',
    text: `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
`
  },
  {
    id: 'priorityclass',
    kind: 'priorityclasses',
    group: 'Policy',
    title: 'Priority class',
    text: `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: high
value: 1000
globalDefault: false
preemptionPolicy: PreemptLowerPriority
`
  },
  {
    id: 'pdb',
    kind: 'poddisruptionbudgets',
    group: 'Policy',
    title: 'Disruption budget',
    text: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: web
  namespace: default
spec:
  minAvailable: 2
  selector:
    matchLabels:
      app: web
`
  },
  {
    id: 'resourceclaim',
    kind: 'resourceclaims',
    group: 'Devices',
    title: 'Resource claim',
    text: `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: one-gpu-{n}
  namespace: default
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
`
  },
  {
    id: 'deviceclass',
    kind: 'deviceclasses',
    group: 'Devices',
    title: 'Device class',
    text: `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: gpu.example.com
spec:
  selectors:
  - cel:
      expression: device.driver == "gpu.example.com"
`
  },
  {
    id: 'resourceslice',
    kind: 'resourceslices',
    group: 'Devices',
    title: 'Resource slice',
    text: `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: node-{n}-gpu
spec:
  driver: gpu.example.com
  nodeName: node-{n}
  pool:
    name: node-{n}
    generation: 1
    resourceSliceCount: 1
  devices:
  - name: gpu-0
    attributes:
      model:
        string: example
    capacity:
      memory:
        value: 16Gi
`
  },
];

// Six nodes in three zones, one tainted; two Deployments, one of which does not fit entirely.
export function exampleCluster() {
  const nodes = ['a', 'b', 'c'].flatMap(
      (z, i) =>
          [NODE({
             name: `node-${z}1`,
             zone: `zone-${z}`,
             cpu: String(8 << i),
             memory: `${32 << i}Gi`,
             labels: ['disk: ssd']
           }),
           NODE({name: `node-${z}2`, zone: `zone-${z}`, cpu: '4', memory: '16Gi', labels: ['disk: hdd']})]);
  nodes[4] =
      NODE({name: 'node-c1', zone: 'zone-c', cpu: '32', memory: '128Gi', extended: ['nvidia.com/gpu: "4"']})
          .replace(
              'status:\n', 'spec:\n  taints:\n  - key: dedicated\n    value: gpu\n    effect: NoSchedule\nstatus:\n');
  const web = workload('Deployment', 'web', '  replicas: 12\n')
                  .replace('cpu: 100m', 'cpu: 500m')
                  .replace('memory: 128Mi', 'memory: 1Gi');
  const big = workload('Deployment', 'analytics', '  replicas: 6\n')
                  .replace('cpu: 100m', 'cpu: "5"')
                  .replace('memory: 128Mi', 'memory: 6Gi');
  return [...nodes, web, big].join('---\n');
}

export const templateFor = (kind) => TEMPLATES.find((t) => t.kind === kind || t.id === kind);

// The text with the number of a copy in it.
export const numbered = (text, n) => text.replace(/\{n(?:%([1-9][0-9]*))?\}/g, (_, m) => String(m ? n % Number(m) : n));
