/** The words of passphrases: common, concrete, and typed with any keyboard. */

/** Spanish ones, without accents. */
export const SPANISH_WORDS: readonly string[] = `
abeja abierto abrazo abrigo abuela aceite acero actor acuario adorno agenda agosto aguila aguja ahorro aire ajedrez
alambre alarma albergue alcalde aldea alegre alero aleta alfombra alga aliado alma almeja altar altura alumno amable
amapola amarillo ambar amigo amistad ancho ancla andar anguila anillo antena antiguo apagar apio aplauso arado arbol
archivo arco ardilla arena armario aroma arpa arroyo arroz arte asador asiento aspa astro atajo atleta atril aula
autobus avena avenida avispa ayuda azada azahar azote azul bahia baile bajo balcon baldosa ballena balsa banco bandeja
banjo barba barco barniz barril barro bastidor batalla baul becerro belleza berenjena bicho bigote billete bisonte
blanco bloque blusa bocina bodega bola bolsa bombilla bondad bonito borde bosque bota botella boton bravo brazo brecha
brillo brindis brisa broche bronce brote brujula bucle bueno buey bufanda buho burbuja butaca buzon caballo cabra
cacao cadena cafe caja cajon calamar caldero calle calma camello camino campana canasta candado canela cangrejo canoa
cantar capa capitan caracol carbon cariz carpeta carro carta casa cascada castor catarata cebolla cedro celeste cena
centro cepillo cerezo cerro cesta chaleco charco chico chispa choza cielo ciervo cigarra cima cinco cine cinta ciruela
cisne ciudad claro clavel clima cobre cocina cofre cohete cojin colina collar columna cometa conejo copa coral corcho
cordel corona correo corteza costa crater crema cresta cristal cruce cuaderno cuadro cubo cuchara cuento cuerda cueva
cumbre cuna cupula curva dado danza dardo deber dedal delfin delta denso deporte desayuno desierto despacho destello
diadema diamante dibujo diente dinamo disco doble doce dorado dragon ducha duelo duende dulce duna eclipse edificio
eje elefante elegir embudo empate encina enero enigma ensayo entrada erizo escala escoba escudo esfera espada espejo
espiga espuma esquina estadio estanque estrella estufa etapa exacto examen fabula faisan falda familia fanal faro
farol feliz feria fiesta figura fila filtro firma flauta flecha flor flota foca fogata folio fondo forma fortuna foto
fragua franja freno fresa frio fruta fuego fuente fuerte furgon futuro gacela gafas gaita galeria galgo gallo gamba
ganso garaje garza gato gaviota gemelo gente geranio gigante girasol globo golfo goloso goma gorila gorra gota granja
grano grillo gris grua grupo guante guia guijarro guinda guitarra gusano hacha hada halcon hamaca harina hebilla
helado helecho heno heraldo hielo hierba higo hilo himno hogar hoguera hoja hongo horario horno hotel hoyo huella
huerto hueso humo huracan idea iglesia iman imprenta indice invierno isla islote jabon jade jaguar jamon jarabe jardin
jarra jaula jazmin jefe jinete jirafa jornada joya juego jueves jugo julio junco jungla justo kilo labio ladera
ladrillo lago lana lancha langosta lanza lapiz largo laurel lazo leal leche lectura lejano lengua lente lento leon
letra libre libro liebre lienzo ligero lima limon linterna lirio lista llama llave llegada lluvia lobo loma lombriz
loro lucero lugar luna lupa madera maestro magia maiz maleta manada mango manta mapa marco marea marfil marino
martillo marzo mascota matiz mayo mazorca medalla medusa mejilla melena melon menta mercado mesa metal mezcla miel
mimbre mina mirlo mochila molino moneda monte morada morsa mosaico motor muelle mural museo musgo naipe naranja nardo
nave nevada nido niebla nieve noble noche nogal norte nota novela nube nuez oasis obra ocaso oceano ocho octubre
oficio olivo olmo onda opalo orilla orquesta ostra oveja oxido pacto pala palma paloma panal pandero papel paraguas
pared parque paseo pasto patio pausa pavo payaso peine pelota penacho pepino pera perla pesca piano pico piedra
pimienta pincel pino pirata piscina pista pizarra placa planta plata playa plaza pluma poema polen polvo pomelo portal
potro pozo prado primo proa puente puerta pulpo puma punto queso quilla quince rama rampa rana rastro rayo receta
recreo red refugio regalo regla reino reloj remo resina revista rincon ritmo roble roca rodilla rojo romero ronda ropa
rosa rueda ruta sabana sabio sala salmon salto sandia sauce sello selva semilla senda sereno serpiente sierra siete
siglo silbato silla sirena sobre sol sombra sonido sopa suave suelo surco tabla taller tambor tapiz tarde taza teatro
techo tejado tela templo tenedor terraza tesoro tigre tijera timbre tinta toalla toldo tomate topo torre tortuga
trebol tren trigo trompeta trueno tulipan tunel turno uno urbano urna uva vaca valle vapor vela velero venado verano
verde vereda viaje vidrio viento vino violin visera volcan vuelo yate yegua yema yunque zafiro zanja zapato zorro zumo
`.trim().split(/\s/)

/** English ones. */
export const ENGLISH_WORDS: readonly string[] = `
acorn acre actor adapt advice agent alarm album alert algae alley almond alpine amber amuse anchor angle animal ankle
answer antler anvil apple april apron arbor arch arena armor arrow artist aspen atlas attic august autumn award axle
bacon badge bagel baker balcony ballad bamboo banana banjo banner barley barn barrel basil basin basket beach beacon
beaver bell bench berry birch bishop bison blanket blossom bluff board bonnet border bottle boulder bowl branch brass
bread breeze brick bridge bright bronze brook broom brush bubble bucket buckle buffalo bugle bundle bunny butter
button cabin cable cactus camel camera candle canoe canvas canyon captain caramel carbon cargo carpet carrot castle
catalog cattle cedar cello cement center cereal chalk chapel cheese cherry chess chimney cider cinema circle citrus
clay clever cliff clock cloth cloud clover coast cobalt cocoa coffee comet compass copper coral corner cotton cradle
crane crater crayon cricket crimson crown crystal cup curtain cushion custom cymbal daisy dance dawn deck deer delta
denim desert desk diamond dinner dolphin donkey door dragon drawer dream drift drum duck dune eagle early earth echo
edge eight elbow elder elk elm ember empire engine envelope evening fabric falcon family farm feather fence fern ferry
fiddle field finch fire flag flame flask flint flower flute foam forest fossil fountain fox frame freight frost fruit
galaxy gallon garden garlic gate gazelle gentle geyser giant ginger giraffe glacier glass globe glove goblet gold
goose grain granite grape grass gravel green grove guitar gull hammer harbor harp harvest hat hawk hazel heather hedge
helmet herald herb hero heron hickory hill hinge honey hood hook horizon horn horse hotel house humble hut ice icon
igloo inch indigo ink inlet iris iron island ivory ivy jacket jade jaguar jar jasmine jelly jewel jigsaw jolly journal
judge juice july jungle juniper kayak kernel kettle key kite kitten knee knight knot koala label ladder lagoon lake
lamp lantern laptop larch lark laurel lava lavender leaf lemon lens lentil level library light lilac lily lime linen
lion lizard llama lobster locket log lotus lunar lunch lute lynx magnet maple marble march margin market mask meadow
medal melody melon metal meteor midnight mild mill mineral mint mirror mitten monkey moon morning mosaic moss motor
mountain mouse muffin mural museum music napkin nectar needle nest nickel night noble noodle north novel nutmeg oak
oasis oat ocean octopus olive onion opal orange orbit orchard orchid otter oval oven owl oxygen oyster paddle page
paint palace palm panda panther paper parade parcel parrot parsley path peach peanut pear pearl pebble pelican pencil
penguin pepper perch petal piano pickle picnic pigeon pillow pilot pine pirate planet plaza plum pocket poem polar
pond pony poppy porch potato prairie prism puddle puffin pumpkin puppet purple quail quarry quartz quiet quill quilt
rabbit radar radio raft rain raisin ranch raven reef ribbon rice ridge river robin rocket roof rose rover ruby rudder
rustic saddle saffron sail salad salmon salt sand sapphire satin saturn scarf school scooter seal season seed shadow
shell shield ship shore silk silver singer sketch sky sleigh slope smoke snail snow soap socket solar song soup south
spark sparrow spice spider spiral spoon spring spruce square squash stable stamp star station steam stone stork storm
story straw stream summer sunset swan table tablet talent tango teacup temple tennis thimble thistle thunder ticket
tiger timber toast tomato topaz torch tower trail train treasure trellis trumpet tulip tunnel turkey turtle tweed
umbrella uncle unit valley vanilla velvet vessel village vine violet violin vista vivid volcano voyage wagon walnut
walrus water wave wheat wheel whisper willow window winter wisdom wolf wonder wool yacht yard yarn yellow yogurt zebra
zenith zigzag zinc
`.trim().split(/\s/)
