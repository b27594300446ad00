/** The built-in parts; the README tells how to remove any. */
export { accessLog } from './parts/access-log/part.ts'
export { etcd } from './parts/etcd/part.ts'
export { metrics } from './parts/metrics/part.ts'
export { openapi } from './parts/openapi/part.ts'
export { operator } from './parts/operator/part.ts'
export { page } from './parts/page/part.ts'
export { pageApi } from './parts/page-api/part.ts'
export { proxyLogin } from './parts/proxy-login/part.ts'
