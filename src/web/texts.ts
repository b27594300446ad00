/** Every text of the page in its two languages; `{name}` is filled in. */

const SPANISH = {
  title: 'Contraseñas', language: 'Idioma', logout: 'Salir', search: 'Buscar por sistema o usuario', create: 'Nueva',
  loginTitle: 'Iniciar sesión', loginNote: 'Este servicio pide una cuenta. La sesión termina al cerrar o recargar la página.',
  email: 'Correo electrónico', password: 'Contraseña', login: 'Entrar', sistema: 'Sistema', usuario: 'Usuario',
  badLogin: 'El correo o la contraseña no son correctos.', badEmail: 'Escribe una dirección de correo.',
  ended: 'Tu sesión ha terminado. Entra de nuevo.', loggedOut: 'Has salido.',
  notRevoked: 'Has salido en esta página, pero no se pudo avisar al servicio: tu acceso sigue siendo válido allí.',
  refresh: 'Actualizar', keys: '↑ ↓ filas · ← → columnas · Intro actúa', loading: 'Cargando…',
  reveal: 'Mostrar', hide: 'Ocultar', copy: 'Copiar', edit: 'Editar', remove: 'Eliminar', close: 'Cerrar',
  revealOf: 'Mostrar la contraseña de {name}', hideOf: 'Ocultar la contraseña de {name}',
  copyOf: 'Copiar la contraseña de {name}', editOf: 'Editar {name}', removeOf: 'Eliminar {name}', hidden: 'Oculta',
  countAll: '{all} entradas', countOne: '1 entrada', countSome: '{some} de {all} entradas',
  emptyTitle: 'Todavía no hay nada guardado', emptyText: 'Guarda aquí la primera contraseña: sistema, usuario y clave.',
  emptyAction: 'Crear la primera', emptyOnly: 'Aquí aparecerá lo que se guarde.',
  noHitTitle: 'Nada coincide', noHitText: 'Ningún sistema ni usuario contiene «{query}».', noHitAction: 'Borrar la búsqueda',
  createTitle: 'Nueva contraseña', editTitle: 'Editar contraseña', save: 'Guardar', cancel: 'Cancelar',
  required: 'Este campo es obligatorio.', invalid: 'El servicio no acepta lo escrito.',
  removalTitle: '¿Eliminar esta contraseña?',
  removalText: 'Desaparece de la lista. Queda en el registro del servicio, y su operador puede recuperarla.',
  generate: 'Generar una contraseña', generator: 'Generador', again: 'Otra', kind: 'Qué se genera', use: 'Usar esta',
  characters: 'Caracteres', words: 'Palabras', length: 'Longitud', wordCount: 'Palabras', classes: 'Clases de caracteres',
  lower: 'a–z', upper: 'A–Z', digits: '2–9', symbols: '#$&…', bits: '{bits} bits de azar',
  created: 'Contraseña guardada.', updated: 'Cambios guardados.', removed: 'Contraseña eliminada.',
  gone: 'Esta contraseña ya no está: alguien la eliminó.',
  copied: 'Copiada. El portapapeles se vacía en {seconds} s.', cleared: 'Portapapeles vaciado.',
  notCopied: 'El navegador no permite copiar aquí. Muestra la contraseña y cópiala a mano.',
  lostTitle: 'No se llega al servicio', lostText: 'Comprueba la conexión. No se ha perdido nada de lo que ves.',
  waitTitle: 'Demasiadas peticiones', waitText: 'El servicio pide esperar {seconds} s.', waitOver: 'Ya se puede volver a intentar.',
  failedTitle: 'El servicio ha fallado', failedText: 'No se pudo hacer: {message}', request: 'Petición {id}',
  unableTitle: 'Sin permiso', unableText: 'Tu cuenta no puede hacer esto.', retry: 'Reintentar',
  limits: 'Con tu cuenta no se puede: {what}.',
  ability_list: 'ver la lista', ability_get: 'leer', ability_create: 'crear', ability_update: 'editar', ability_remove: 'eliminar'
}

/** The name of a text. */
export type TextName = keyof typeof SPANISH

const ENGLISH: { readonly [name in TextName]: string } = {
  title: 'Passwords', language: 'Language', logout: 'Log out', search: 'Search system or user', create: 'New',
  loginTitle: 'Log in', loginNote: 'This service asks for an account. The session ends when you close or reload the page.',
  email: 'E-mail', password: 'Password', login: 'Log in', sistema: 'System', usuario: 'User',
  badLogin: 'The e-mail or the password is not correct.', badEmail: 'Enter an e-mail address.',
  ended: 'Your session has ended. Log in again.', loggedOut: 'You are logged out.',
  notRevoked: 'You are logged out on this page, but the service could not be told: your access is still valid there.',
  refresh: 'Refresh', keys: '↑ ↓ rows · ← → columns · Enter acts', loading: 'Loading…',
  reveal: 'Show', hide: 'Hide', copy: 'Copy', edit: 'Edit', remove: 'Delete', close: 'Close',
  revealOf: 'Show the password of {name}', hideOf: 'Hide the password of {name}',
  copyOf: 'Copy the password of {name}', editOf: 'Edit {name}', removeOf: 'Delete {name}', hidden: 'Hidden',
  countAll: '{all} entries', countOne: '1 entry', countSome: '{some} of {all} entries',
  emptyTitle: 'Nothing is stored yet', emptyText: 'Keep the first password here: system, user and secret.',
  emptyAction: 'Create the first', emptyOnly: 'What is stored will appear here.',
  noHitTitle: 'Nothing matches', noHitText: 'No system and no user contains “{query}”.', noHitAction: 'Clear the search',
  createTitle: 'New password', editTitle: 'Edit password', save: 'Save', cancel: 'Cancel',
  required: 'This field is required.', invalid: 'The service does not accept what was entered.',
  removalTitle: 'Delete this password?',
  removalText: 'It leaves the list. The service keeps it in its journal, and its operator can bring it back.',
  generate: 'Generate a password', generator: 'Generator', again: 'Another', kind: 'What to generate', use: 'Use this one',
  characters: 'Characters', words: 'Words', length: 'Length', wordCount: 'Words', classes: 'Classes of characters',
  lower: 'a–z', upper: 'A–Z', digits: '2–9', symbols: '#$&…', bits: '{bits} bits of chance',
  created: 'Password saved.', updated: 'Changes saved.', removed: 'Password deleted.',
  gone: 'This password is not there any more: somebody deleted it.',
  copied: 'Copied. The clipboard is emptied in {seconds} s.', cleared: 'Clipboard emptied.',
  notCopied: 'The browser does not allow copying here. Show the password and copy it by hand.',
  lostTitle: 'The service cannot be reached', lostText: 'Check the connection. Nothing of what you see is lost.',
  waitTitle: 'Too many requests', waitText: 'The service asks to wait {seconds} s.', waitOver: 'You can try again now.',
  failedTitle: 'The service has failed', failedText: 'It could not be done: {message}', request: 'Request {id}',
  unableTitle: 'Not allowed', unableText: 'Your account cannot do this.', retry: 'Try again',
  limits: 'Your account cannot: {what}.',
  ability_list: 'see the list', ability_get: 'read', ability_create: 'create', ability_update: 'edit', ability_remove: 'delete'
}

/** The texts by language. */
export const TEXTS: { readonly es: typeof ENGLISH, readonly en: typeof ENGLISH } = { es: SPANISH, en: ENGLISH }
