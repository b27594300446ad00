/**
 * Documents for the JSON parser by the section of RFC 8259: what it has every parser accept or refuse, and what it
 * leaves to the parser. Further ones that are refused are in `parse.test.ts`, with the place of their fault.
 */
import { Buffer } from 'node:buffer'

/** The nesting bound of all tests; only the documents of §9 reach it. */
export const maxDepth = 16

/** What becomes of a document: a value, or a fault for a key given twice, its syntax, or bytes that are not UTF-8. */
export type Kind = 'accepted' | 'twice' | 'syntax' | 'invalid'

/** Bytes from hexadecimal digits, two each; white space between them is for the reader. */
function hex(digits: string): Buffer { return Buffer.from(digits.replaceAll(' ', ''), 'hex') }

/** The bytes of a string literal, quotes included, whose contents are the bytes. */
function quoted(digits: string): Buffer { return hex(`22${digits}22`) }

function nested(open: string, core: string, close: string, depth: number): string {
  return open.repeat(depth) + core + close.repeat(depth)
}

export const DOCUMENTS: {
  readonly [kind in Exclude<Kind, 'invalid'>]: { readonly [section: string]: readonly (string | Buffer)[] }
} = {
  accepted: {
    '§2': [
      '{"a":1}', '[1]', '"a"', '7', 'true', 'false', 'null', ' \t\r\n7\n\r\t ', '\t[ 1\n,\r\n2 , 3\t] ',
      ' { "a"\t:\n1\r, "b" : 2 } ', '[ \t\r\n]', '{\n\n}', '[1,\r2]', '{}\n', `${' \n'.repeat(3000)}0`
    ],
    '§3': [
      '[true,false,null]', '{"true":true,"false":false,"null":null}'
    ],
    '§4': [
      '{}', '{"":0}', '{" ":0}', '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}',
      '{"a":{},"b":[],"c":"","d":0,"e":true,"f":false,"g":null}', '{"a":{"b":{"c":{}}}}', '{"key":1,"Key":2,"KEY":3}',
      '{"\u00e9":1,"e\u0301":2}', '{"a":1,"a\\u0000":2}', '{"\\ud800":1,"\\udc00":2,"\\ud800\\udc00":3}',
      '{"10":1,"9":2,"01":3,"-1":4,"1.5":5,"1e3":6}', '{"4294967295":1,"4294967294":2,"4294967296":3}',
      '{"a":{"a":{"a":1}}}', '[{"a":1},{"a":2}]', '{"a":"a"}', '{"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041":0}',
      '{"contraseña":"🔑"}', `{"${'k'.repeat(1000)}":0}`, '{"__proto__":1}', '{"__proto__":{"polluted":true},"a":1}',
      '{"__proto__":null}', '{"a":{"__proto__":{"__proto__":[]}}}', '{"\\u005f_proto__":{"polluted":true}}',
      '{"constructor":{"prototype":{"polluted":true}}}',
      '{"toString":1,"valueOf":2,"hasOwnProperty":3,"isPrototypeOf":4,"toJSON":5}', '{"length":-1,"prototype":{}}',
      '{"constructor":1}'
    ],
    '§5': [
      '[]', '[null]', '[{},[],"",0,true,false,null]', '[[[],[[]]],[[],[]]]', `[${'1,'.repeat(999)}1]`,
      '[[],[],[],[]]', '["]","[","}","{",",",":"]'
    ],
    '§6': [
      '0', '-0', '-0.0e-0', '-1', '10', '0.5', '-0.5', '1.000', '0.00001', '1e2', '1E2', '1e+2', '1E-2', '1e0002',
      '0e5', '-12.345E+06', '9007199254740991', '1.7976931348623157e308', '5e-324', '[0,{"a":-1},{"b":2e1},[3.0]]',
      '[1 ,2\t,3\n,4\r]',
      '1e999', '-1e999', '1.7976931348623159e308', '9'.repeat(400), '1e-999', '-1e-999', '2e-324',
      `1e${'9'.repeat(1000)}`, '0e999', '9007199254740993', `0.1${'0'.repeat(500)}1`, `0.${'0'.repeat(400)}1e401`
    ],
    '§7': [
      '""', '" "', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"/"', '"\\u00e9\\uabcd"', '"\\u00E9\\uABCD"', '"\\uaBcD\\uFfFf"',
      '"\\u0000"', '"\\u0001\\u001f\\u007f\\u0080\\u009f"', '"\\u0022"', '"\\u005cn"', '"\\ud83d\\udd11"',
      '"\\u00411234"', '"\u007f"', '"\u0080\u0085\u009f"', '"\\\\"', '"\\""', `"${'\\\\'.repeat(50)}"`, '"\'`"',
      '"{\\"a\\":[1,true]}"', '"/* a */ // b"', '"é\\u00e9é\\né🔑\\ud83d\\udd11🔑"', `"${'x'.repeat(5000)}"`,
      `"${'ñ漢🔑'.repeat(1000)}"`
    ],
    '§8.1': [
      '"aé漢🔑"', quoted('c2 80 df bf e0 a0 80 ef bf bf f0 90 80 80 f4 8f bf bf'), quoted('ed 9f bf ee 80 80'),
      quoted('ef bf bd'), quoted('ef b7 90 ef bf be f0 9f bf bf'), '"\u2028\u2029"', '"\ufeff"', '{"\ufeff":0}',
      '"n\u0303 👩\u200d🚀 \u202eabc"'
    ],
    '§8.2': [
      '"\\ud83d"', '"\\uDD11"', '"\\udd11\\ud83d"', '"\\ud83d\\ud83d\\udd11"', '"\\ud83dx"', '"\\ud83d\\n"',
      '"\\ud83d🔑"', '{"\\udc00":0}', '"\\ufffe\\uffff\\ufdd0"'
    ],
    '§9': [
      nested('[', '', ']', maxDepth), nested('{"a":', '1', '}', maxDepth), nested('[{"a":', '"b"', '}]', maxDepth / 2)
    ]
  },
  syntax: {
    '§2': [
      '[\u00a01]', '1\u200b', '\0{}', '[]\n[]', '{"a":1}}', '1 // one', '[1, /* two */ 2]', '# one\n1', '({})',
      ")]}',\n{}"
    ],
    '§3': ['True', '[Null]', '{"a":fals}', 'nulll', 'n\\u0075ll', 'ｔｒｕｅ', 'undefined', 'NaN', '[Infinity]'],
    '§4': ['{,}', '{"a"=1}', '{a:1}', "{'a':1}", '{1:1}', '{"a":1;"b":2}', '{"a":1,,"b":2}', '{"a":"b""}', '{...}'],
    '§5': ['[1,\n ', '[1,,]', '[,1]', '[true false]', '["a":1]', '[{"a":[}]}'],
    '§6': ['+', '--1', '00', '-.5', '1.e1', '1,5', '0x1F', '1_000', '1n', '1.0f', '１２', '[٣]', '−1', '∞'],
    '§7': ["'a'", '`a`', '“a”', '"\\v"', '"\\x41"', '"\\u{41}"', '"\\u００４１"', '"a\tb"', quoted('1f')],
    '§8.1': [hex('ef bb bf'), hex('00 7b 00 7d'), hex('7b 00 7d 00'), hex('7b 00 00 00 7d 00 00 00')]
  },
  twice: {
    '§4': [
      '{"a":1,"a":2}', '{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '{"\\/":1,"\\u002F":2}', '{"🔑":1,"\\uD83D\\uDD11":2}',
      '{"a":1,"b":2,"c":3,"a":4}', '{"":1,"":2}', '{"0":1,"0":2}', '{"a":null,"a":2}', '[{"a":{"b":1,"b":2}}]',
      '{"__proto__":1,"__proto__":2}', '{"__proto__":null,"\\u005f_proto__":{}}', '{"constructor":1,"constructor":2}',
      '{"\\ud800":1,"\\uD800":2}'
    ]
  }
}
