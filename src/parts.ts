/** The parts that are built in, a line each. Taking one out is deleting its line and its folder. */
export { etcd } from './parts/etcd/part.ts'
export { metrics } from './parts/metrics/part.ts'
export { openapi } from './parts/openapi/part.ts'
export { operator } from './parts/operator/part.ts'
export { page } from './parts/page/part.ts'
export { extra } from './parts/extra/part.ts'
