/** The commonest words of passwords: in small letters, without accents, in order. */
export const COMMONEST = `
007 010203 040506 070809 101010 102030 112112 112233 112358 121212 123654 123789 123abc 123qwe 123qweasd 12qwaszx
131313 1337 13579 135790 147258 147258369 147852 159357 159753 1a2b3c 1a2b3c4d 202020 223344 24680 246810 258369
258456 271828 314159 31415926 321654 357159 369258147 405060 420 445566 456123 4815162342 50cent 654123 666 696969
741852 741852963 753159 777 778899 789456 789456123 852963 911911 951753 963852 987456 a1b2c3 a1b2c3d4 aaa aaaa aaaaaa
aabbcc abab abc abc123 abcabc abcd abcdef abcdefg abogado abrete abretesesamo abril abuela abuelo acceso access
accesso account acdc adams adios admin administracion administrador administradora administrateur administration
administrator agosto agua aguila aguilas aire aires airforce ajax alabama alaska albert alberto alegria alejandra
alejandro aleksandr aleksandra aleluya alemania alex alexander alexandra alexandre alexandria alexandrovna alfonso
alfredo alguien alicia alien aliens alleluia allen almeida alone alonso alvarez always amanda amarillo amazing amazon
amelia amen america americaclub amiga amigas amigo amigos amo amor amorcito amores amormio amsterdam amy ana anabel
anakin anastasia and andalucia andrea andres andrew android angel angela angeles angelica angelita angelito angels
anita anna anthony antonia antonio anybody anyone anything apollo apple april aragorn architecture arcoiris argentina
arizona arkansas army arsenal arthur arturo asd123 asdasd asdf asdfgh asdfghjkl asdqwe asdzxc asesino ashley assassin
assassins asshole asturias athena athens athletic atlanta atletico auckland audi august austin australia austria
autumn avadakedavra avatar avengers avril awesome azerty azertyuiop azucar azul baby badboy badgirl baggins bailar
baile bailey baker ball baloncesto bambi banana banco bank barbara barbie barcelona barnes bart baseball basketball
bass batman bayern bbb beach bear bears beatles beatriz beautiful bebe beckham beer beijing bell bella bendicion
benfica benjamin bennett benz berlin best betis betty beverly beyonce bhbyf bible biblia biblioteca bieber bienvenida
bienvenido bienvenidos bilbao billion bird birthday bitch black blah blanca blanco bleach bless blessed blessing
blink182 blue bmw bobdylan bobmarley boca bocajuniors bogota bolivia bombero bond bonita bonito boomer borussia bosque
boss boston boy boys brandon brasil bratz braveheart brazil brenda brian brilliant britney broncos brooks brother
brothers brown brussels bryant buddy budweiser buenos bulgaria bulls bunny burger burrito business businessman buster
butter butterfly bye caballero caballo caballos cabron cafe cake california call callofduty camara camaro cambiame
cambiar camelot camera campbell campeon campeones canada canarias candy cantar cappuccino captain caracas caramelo
carino carl carla carlitos carlos carmen carol carolina carolyn carter casa castillo castro cat catalina cataluna
catalunya catherine cats ccc cdtnf cecilia cell centos cereza cerveza cesar cfitymrf champion champions change
changeme charizard charles charlie chavez cheese cheetah chelsea chemical cherry chevrolet chevy chicago chicken chile
china chivas chocolate chocolatito chris christ christian christina christine christmas christopher church cielo cisco
city civilization cjkysirj clara clark claudia claus clave claves cobra coca coco coconut coffee cola coldplay colegio
coleman college collins colombia colorado commander company compaq computadora computer con concepcion conejo
connecticut constitution construction consuelo contrasena contrasenas contrasenya cook cookie cookies cool coolguy
cooper corazon corazoncito cordoba corinthians corona correcthorsebatterystaple correo corvette cosmopolitan costarica
counter counterstrike cow cowboy cowboys cowgirl cox cradleoffilth crazy cream creed cristal cristian cristiano
cristina cristo cruz crystal cthutq cuba cuenta cullen culo cumpleanos cupcake cycling cynthia daddy daddysgirl daisy
dakota dallas dance dangerous daniel danielle dark darkness darkside darth database david davidson davis day dbrnjh
ddd de deadpool death debian debora deborah debra december default degenerationx del delaware delfin delgado dell demo
democracy demon demonio dennis denver depechemode desert desierto destino destiny detroit developer devil devilmaycry
diablo diamante diamond diamonds diana diaz diciembre diego different difficult dinero dinosaur dinosaurio dios dioses
diosteama direction director disney dmitriy dmitry docker doctor doctora dog dogg doggy dogs dolores dolphin dolphins
domingo dominguez donald donna dorado dorothy dortmund dos douglas down dragon dragonball dragonballz dragonfly
dragons dream dreamer dreams drummer drums ducati duck ducky dulce dumbledore duty eagle eagles earth earthquake
ecuador eduardo edward edwards eee ekaterina el elefante elena elephant elephants elizabeth elvis email emilio emily
eminem emma empresa empresas encarnacion energy enero enfermera engineer engineering england enrique enterprise
entertainment entrar eres eric ericsson ernesto escorpion escuela esmeralda espana espanyol esperanza espiritu esteban
ester estrella estrellas estrellita estudiante eternity euskadi eva evanescence evans everyone everything evil
excalibur excelente excellent fabian facebook fairy faith falcon fallout familia family familyguy fantasma fantastic
fantastico fantasy father fcbarcelona febrero february federico felicidad felipe feliz fenix fernanda fernandez
fernando ferrari ferreira fff fiftycent final finland fire firefighter firefly firefox first fktrcfylh flamengo flor
florence flores florida flower flowers floyd floyds flvby football for force ford forest forever fortnite foster
france francia francisco frank frankenstein freedom fresa friday friend friends frodo frog fuck fucker fuckoff fuckyou
fuego fuerza futbol fylhtq gabriel gabriela gaga galaxy galicia galleta galletas game gamer games gaming ganador
gandalf gangsta gangstar gangster garcia garden garfield gatita gatito gato gatos general george georgia gerald
gerardo gerente germany gfhjkm ggg ghbdtn ghjcnj ghost giants ginger giraffe girasol girl girls github gitlab
gladiator gloria gmail goat gobierno god godisgood godislove godzilla goku gold golden golf gollum gomez gonzalez
gonzalo good goodboy goodbye google government grace gracia gracias granada grape gray grecia greece green gregory
gremio griffin gris gryffindor gtasanandreas gtnhjd guadalajara guadalupe guapa guapo guatemala guerrero guest
guillermo guitar guitarra guns gunsnroses gustavo gutierrez habana hada hahaha hakuna halcon hall hallelujah halloween
halo hamburg hamburger hamburguesa hampshire hamster handkerchief handsome happiness happy hardcore hardwork harley
harold harris harry harrypotter hawaii hawk hayes he heart heartbreaker heather heaven heavenly heavy hector hedgehog
heineken helen hell hello hellokitty henderson henry hercules hermana hermano hermanos hermione hermosa hermoso
hernandez herrera herself hewlett hielo high hija hijas hijo hijos hills himself hjvfy hobbit hockey hogar hogwarts
hola holahola holanda holy home homer honda honduras honey hong hope horse horses hospital hot hotgirl hotmail hottie
houston howard huawei hughes hugo hulk hundred hungary hunter huracan hurricane hyundai ibiza ice ichigo idaho iglesia
iglesias ignacio igor illinois ilove iloveyou immortal important impossible impresora in incredible independence india
indiana indonesia infierno infinity ingeniero inglaterra inmaculada instagram instituto intelligence inter
internacional international internazionale internet intervention invierno invincible invisible invitado invitados iowa
iphone ireland irene irina irlanda iron ironman is isabel isabella isla island israel istanbul it itachi italia italy
ivan jack jackson jacob jaguar jaime jajaja jamaica james janeiro janet january japan japon jardin jasmine jason
javier jedi jefe jeffrey jellybean jenkins jennifer jerry jersey jessica jessie jesucristo jesus jimenez jirafa jkmuf
joaquin joder joe john johnny johnson joker jonas jonathan jones jordan jordan23 jorge jose josemaria joseph joshua
juan juana juego juegos jueves julia julian julio july june jungle junio juniors juniper justin justinbieber juventus
kakaka kansas karen karina katherine kathryn kawasaki keith kelly kenobi kentucky kevin keyboard kill killer kimberly
kindergarten king kingdom kitten kittens kitty knight knights kobe kombat kong ktyf kubernetes la ladygaga lahabana
lakers lalala lamborghini laptop las laugh laura lauren lavigne lawrence lawyer league leagueoflegends leave
leavemealone lebron ledzeppelin legend legendary legends legolas lemon lenovo leon leonardo leopard leticia letme
letmein letmeinnow lewis libertad liberty library life lifeisgood lightning lily lima limon linda lindo linkedin
linkin linux lion lionelmessi lisboa lisbon live livelaughlove liverpool lizard ljxrf lkjh lluvia lobo loca loco
locura login logmein logon lol lola lolol lololo london londres long lopez lord lordoftherings lorena los louis louise
louisiana love loveisall lovely loveme lover loves lovesme lucas lucia lucifer lucky luffy luigi luis luisa luke luna
lunes lunita madonna madre madrid maestro magia magic magico magnificent maiden mail maker maksim malaga mallorca mama
mamama mamaypapa mamita manager manchester mango manuel manuela manzana mar maradona marcela marcelo march marcos
margaret margarita maria mariana mariano marina marine marines mario mariposa mark marley marta martes martha martin
martina martinez marvelous maryland marzo massachusetts massimiliano master masterchief masturbation matata mateo
matrix matthew mauricio max maxim mayo mazda me medellin medical medicina medico medina megadeth mejoramiga melbourne
melissa melon mendoza mercedes mercy merlin mermaid merry messi metal metallica mewtwo mexico mi miami micasa michael
michelangelo michelle michigan mickey microsoft midnight miel miercoles mierda mifamilia mifamily miguel milan militar
military miller million millionario minecraft minnesota minnie mississippi missouri mitchell mitsubishi mivida mnbvc
mode modem molina mommy monday money monica monitor monkey monkeys montana montevideo montreal moon moonlight moore
morado morales mordor moreno morgan morpheus morris mortal moscow moskva motdepasse mother motorola mountain mouse
mucho muerte muffin mundo munich munoz murcia murphy music musica mustang my mychemicalromance myfamily mylife myself
mysql nada naked nala nancy napoli naranja naruto nastya natalia natasha navarro navidad navy nebraska necronomicon
need needforspeed negro nelson neo netflix netherlands network nevada never neversaynever newjersey newyork neymar
nfyz nicaragua nicholas nicolas nicole nieve night nightcrawler nightmare nikita nina ninja nino nintendo nirvana
nissan no nobody noelia nokia northcarolina noruega norway not nothing november noviembre nude nueva nuevayork nuevo
number numero nunca nuria nurse nursing oasis obiwan ocean oceano october octubre odin of office officer oficina ohio
oklahoma oleg olga oliveira olivia one onedirection onepiece onetwothree open opensesame oracle orange orchid
ordenador oregon orlando oro ortega ortiz oscar oso otono overwatch pablo packard packers paco padre pajaro palmeiras
paloma pamela panama panda pantera panther papa papapa papito para paradise paraguay paraiso paramore paris park
parker parola parrot pass passord passpass passw passwd password passwords passwort patata patricia patrick patriots
patterson paul paula paulo paz peace peach peanut pearl pedro pele pendejo penguin pennsylvania pepe pepper pepsi
pereira perez perfect perfecta perfecto perla perrita perrito perro perros perry peru peter peterson pfqxbr phantom
philadelphia phillips phoenix piano pig pikachu pilar pilot piloto pimienta pimp pineapple pinguino pink pizza plata
platano plate play playa playboy player playgirl playstation please poder poiuy pokemon poland police policia pollo
polonia pooh por porfavor porno pornographic porsche portland porto portugal postgres potato potter powell power
powerpuffgirls prayer preciosa precioso predator president presidente presley primavera prince princesa princesita
princess principe printer privado private probando profesional profesor profesora professional programmer prueba
pruebas public publico puerto puertorico pumas pumpkin punisher punk puppies puppy purple pussy puta puto qaz qazwsx
qsdfghjklm que queen queso quiero quito qwe qwe123 qweasd qweqwe qwerty qwerty123 qwertyuiop qwertz qwertzuiop qwsaqw
rabbit rachel racing radiohead rafael raiders rain rainbow ramirez ramon ramones ramos rana ranger rangers raquel
raspberry raul raymond rbcf rbd realmadrid rebeca rebecca rebelde red redhat redsox reed reggaeton registration reina
relampago remedios republic republica resident resurrection revolucion revolution rey reyes rica ricardo rich richard
richardson rickandmorty rico rider rihanna ring rings rio riodejaneiro river riverplate rjirf robert roberts robinson
roblox rocio rock rockandroll rocknroll rocky rodrigo rodriguez roger rogers rojas rojo roll rolling roma romance
romania rome romero ronaldinho ronaldo root rosa rosado rosario rosas rose roses ross router ruben rubi rubio ruby
ruiz runescape running rusia russell russia ruth ryan sabado sabbath salamanca salvador salvation samantha samsung
samuel san sanandreas sanchez sanders sandia sandra santa santiago santo santos saopaulo sara sarah sasuke satan
satisfaction saturday savior say scandinavian scarface school scooby scoobydoo scooter scorpion scotland scott sea
sean seattle sebastian second secret secreta secreto secretos secure security segura seguridad seguro selena selva
senha september septiembre sergei sergey sergio serpiente server service servicio servidor sesame sesamo sevilla sex
sexy sexylady shadow shadows shakira shanghai shark sharon she sheep show showmethemoney si siemens siempre
silmarillion silva silver silvia simba simmons simpson simpsons singapore sirena sistema sistemas sister sisters sith
skateboarding skull skyrim skywalker slipknot smile smokey snake snickers snoopdogg snoopy snow snowboarding snowflake
snowman soccer sofia sol soldado soldier solution solutions sombra somebody someone something sonia sonic
sonicthehedgehog sonrisa sony soporte south souza soy spain sparky spears speed spider spiderman spirit splinter
spongebob sporting spotify spring squarepants star starcraft starlight stars starwars states steelers stephanie
stephen steven stewart stones storm stormy stratocaster strawberry strike strong student su suarez subaru success
successful suecia sueno suerte sugar suiza summer summertime sun sunday sunflower sunshine super superman supernatural
superstar support surfer susana suzuki svetlana swan sweden sweet sweetie swift swimming switzerland sydney sylvester
sysadmin system systemofadown taco tacos tarjeta tatiana taylor te teacher teadoro teamo teamomucho teclado telecaster
temp temporal temporary tenerife tenis tennessee tennis tequiero tequila teresa terminator terry test tester testing
texas thailand thanks thanksgiving the thecakeisalie third thomas thompson thor thousand three thug thunder thursday
ti tiburon tierra tiger tigers tigger tigre tigres timothy tinker titanic to toby todo together tokyo tomas tomato
tomcat toor tormenta tornado toronto torres tortuga toshiba tottenham toyota trabajo transformer transformers trek
tres trinity trueno trustno tsunami tu tuesday tulipan tupac tupacshakur turkey turner turtle tweety twilight twitter
tyler ubuntu uchiha ukraine un una unbelievable unicorn unicornio unicorns united universidad university uno
unodostres uruguay user username users usuario usuarios utah uzumaki vaca vader vainilla valencia valentin valentina
valentine valladolid vampire vampiro vancouver vanessa vanilla vazquez vbif vegas vegeta venezuela venice verano verde
vermont veronica vfhbyf vfrcbv vicecity vicente victor victoria victory vida viejo vienna viernes vietnam vino violet
virgen virginia vladimir vladimirovna vodka volcano voldemort volkswagen volleyball volvo vuitton wachtwoord walker
walter warcraft ward warrior wars washington water waterfall watson wayne we web wednesday welcome welcomeback whale
whatever whatsapp whiskey whisky white wifi william williams willie wind windows wine winner winnie winniethepooh
winter wisconsin wizard wolf wolverine wolves woman wonder wonderful wood work worker working world worldofwarcraft
wright wsx wxcvbn wyoming xbox xiaomi ximena xxx xyz yahoo yamaha yankees yellow yfnfif yo yoda yolanda york you young
yourself youtube yxcvbnm zaq12wsx zaragoza zelda zeppelin zeus zidane zombie zombies zoro zxasqw zxc zxc123 zxcvbn
zxcvbnm zxcvbnml zzz
`
