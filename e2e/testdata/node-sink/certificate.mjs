// A certificate in DER. Node.js reads certificates and makes none.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

const der = (tag, ...parts) => {
  const body = Buffer.concat(parts.map((p) => Buffer.from(p)))
  const n = body.length
  const size = n < 128 ? [n] : n < 256 ? [0x81, n] : [0x82, n >> 8, n & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}
const sequence = (...parts) => der(0x30, ...parts)
const ecdsaWithSHA256 = sequence(der(0x06, [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]))
const name = sequence(der(0x31, sequence(der(0x06, [0x55, 0x04, 0x03]), der(0x0c, Buffer.from('localhost')))))
const time = (t) => der(0x18, Buffer.from(t.toISOString().replace(/[-:T]|\.\d+/g, '')))

// certificate returns a self-signed certificate of P-256 for localhost, valid for ten
// years, and its key.
export function certificate () {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const names = sequence(der(0x06, [0x55, 0x1d, 0x11]), der(0x04, sequence(der(0x82, Buffer.from('localhost')))))
  const now = Date.now()
  const body = sequence(
    der(0xa0, der(0x02, [2])), der(0x02, [1], randomBytes(15)), ecdsaWithSHA256, name,
    sequence(time(new Date(now - 3600e3)), time(new Date(now + 3650 * 86400e3))), name,
    publicKey.export({ type: 'spki', format: 'der' }), der(0xa3, sequence(names)))
  const cert = sequence(body, ecdsaWithSHA256, der(0x03, [0], sign('sha256', body, privateKey)))
  const pem = `-----BEGIN CERTIFICATE-----\n${cert.toString('base64')}\n-----END CERTIFICATE-----\n`
  return { der: cert, pem: Buffer.from(pem), key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}
