/** What an editor shows an embedder. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { SETTINGS } from '../../src/settings.ts'

const INDEX = fileURLToPath(new URL('../../src/embedding/embedded-service.ts', import.meta.url))

test('every option of openService and function of a service says what it is, or is in the settings table', () => {
  const options: ts.CompilerOptions = {
    strict: true, noEmit: true, allowImportingTsExtensions: true, target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, types: ['node']
  }
  const program = ts.createProgram([INDEX], options)
  const checker = program.getTypeChecker()
  const source = checker.getSymbolAtLocation(program.getSourceFile(INDEX)!)!
  const open = checker.getExportsOfModule(source).find(({ name }) => name === 'openService')!
  const [signature] = checker.getTypeOfSymbol(open).getCallSignatures()
  const given = checker.getTypeOfSymbol(signature!.getParameters()[0]!).getProperties()
  const service = checker.getAwaitedType(signature!.getReturnType())!.getProperties()
  assert.ok(given.length > 25 && service.length > 7, `${given.length} options, ${service.length} functions`)
  const silent = [...given, ...service].filter(one => one.getDocumentationComment(checker).length === 0)
    .map(({ name }) => name)
  const explained = Object.entries(SETTINGS).filter(([, { help }]) => help.length > 10).map(([name]) => name)
  assert.deepEqual(silent.filter(name => !explained.includes(name)), [])
})
