"""What the text head learns from: words for every attribute of a look, sentences around them, and what is left unsaid.

A phrase is made by drawing attributes, words for them and a frame ("drive through ..", "make it ..", "no .."), all
from one seeded generator. Unsaid attributes are day, clear, and the biome that suits the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...models.shared.road.look import ATTRIBUTES, BIOMES, LOOK, TIMES, WEATHERS

# Words stand alone or behind "in", "at", "with".
WORDS: dict[str, str] = {
    "dawn": (
        "dawn, sunrise, daybreak, early morning, morning, first light, the break of day, morning light, the "
        "rising sun, day is breaking, the sun is coming up, early hours, a new day begins, sunny morning, "
        "pale morning sky, the sun rises, the morning commute, before work, morning coffee, alarm clock, "
        "sunbeams at daybreak, dew, the day starts, birdsong, coffee and newspapers, first sunlight, at first "
        "light, milkman, jogging before work, sunrise colours, matins, rise and shine, good morning, the "
        "early bird, pink morning clouds, six o'clock in the morning"
    ),
    "day": (
        "day, daytime, daylight, noon, midday, afternoon, broad daylight, the middle of the day, high noon, "
        "full sun, early afternoon, bright day, the day, sunlit hours, summer day, midday heat, school hours, "
        "siesta, weekday, the bright hours, midafternoon, meridian, noonday, middle of the afternoon, working "
        "hours, recess, daylight hours, children playing outside, two in the afternoon"
    ),
    "dusk": (
        "dusk, sunset, evening, twilight, golden hour, the setting sun, the sun is going down, nightfall, "
        "late evening, the end of the day, early evening, orange sky, the last light, supper, happy hour, "
        "purple evening sky, the sun sets, the day is ending, after work, evening prayer, the sun sinks, "
        "dusky, sunset colours, eventide, crimson horizon, day fades, the sun dips below the horizon, good "
        "evening, evening glow, cocktail hour, rush hour in the evening, the sun is low, afterglow, last "
        "rays, lanterns are lit, late sun, homecoming"
    ),
    "night": (
        "night, nighttime, night time, dark night, after dark, moonlight, moonlit, starry night, stars, late "
        "at night, under the stars, full moon, the dead of night, darkness, dark, the moon is out, eleven pm, "
        "starlight, tonight, asleep, dreams, astronomy, galaxies, werewolves, ghosts, nightly, good night, "
        "moon, moonrise, dreaming, nightmare, night shift, the moon and the stars, candle light, night sky, "
        "sleepy, sleep, asleep in bed, one in the morning, lights out, telescope, cosmos, shooting star, "
        "crescent moon, nightlife, night watch, haunted, comet"
    ),
    "desert": (
        "desert, dunes, sand dunes, sandy plains, sand, cactus, cactuses, arid land, dry land, canyon, mesa, "
        "red rocks, badlands, outback, wild west, utah, savanna, steppe, texas, morocco, sandstone, barren "
        "land, hot sands, nomads, scorched plain, cowboys, the australian interior, monument valley, "
        "tumbleweed, sinai, arabia, arabian sands, the moon's surface, dune, drought, libya, rattlesnakes, "
        "lizards, pharaohs, iraq, caravan, sandy, desert highway, hot and dry, arid, cacti, dry riverbed, "
        "tombs, ali baba, dromedary, mirage, salt flats, rocky plateau, sun baked, rodeo, sombrero, sonora, "
        "nubia, sudan, saudi arabia, yemen, oman, jordan, petra, niger, chad, mali, algeria, tunisia, persia, "
        "afghanistan, mongolia, atacama, the grand canyon, el paso, phoenix, tucson, moab, western movie, "
        "saloon, vultures, coyotes, iguanas, sphinx, crater, drylands, dustbowl, prairie in a drought"
    ),
    "forest": (
        "forest, woods, trees, pine trees, pines, jungle, rainforest, woodland, green hills, fir trees, deep "
        "woods, backwoods, black forest, meadows, countryside, green valley, undergrowth, wilderness, "
        "evergreen trees, foliage, elves, shady trees, a tree lined road, nature, leaf, national park, rural "
        "road, farmland, congo, foxes, borneo, squirrels, wolves, hunters, camping, log cabin, vermont, wild "
        "boars, orchard, willow, elm, beech, ivy, forest road, woody, wooded, copse, logging, cedar, fir, "
        "poplar, bush, shrubs, glade, hobbits, fairy tale, elf, moose, bear, badger, monkeys, gorillas, "
        "orangutan, tarzan, brazil, costa rica, congo basin, germany's woods, maine, tennessee, appalachia, "
        "bohemia, poland, green, greenery, lush, garden, park, plants, botany, orchards, vineyard, grass, "
        "pasture, sheep, cows, cottage, campfire, hiking trail, treehouse, river valley, lake in the woods, "
        "autumn leaves, spring blossoms, hills, sherwood, palmetto"
    ),
    "snow": (
        "snow, snowy road, snowy mountains, winter, winter wonderland, ice, icy road, frozen lake, arctic, "
        "the alps, glacier, tundra, christmas, ski resort, cold mountains, frost, frozen land, north pole, "
        "snowfall, iceland, snowflakes, mountain pass, finland, a cold white landscape, freezing cold, "
        "snowman, ice age, yeti, nordic winter, ice skating, hockey, reindeer, canada in winter, february, "
        "mont blanc, walrus, snowstorm, sleet, hail, eskimos, snowy, ski, sledding, ice rink, icicles, "
        "frosty, freezing, frozen, cold, wintry, winter road, permafrost, ice sheet, pole, seal hunters, "
        "mammoth, arctic circle, yukon, lapps, sweden, helvetia, mountaineering, summit, alpine, snowcapped "
        "peaks, nepal, tibet, mountain peak, k2, wintertime, new year's eve, yule, elves of father christmas, "
        "mittens, wool hats, hot chocolate, white christmas, snowplow, winter olympics, inuit, huskies, "
        "narnia, frozen kingdom, ice queen"
    ),
    "city": (
        "city, town, downtown, big city, streets, skyscrapers, neon lights, neon city, urban road, "
        "metropolis, tokyo, new york, traffic lights, buildings, street lamps, city center, suburbs, "
        "singapore, robots, shops, tower, night life, capital city, times square, skyline, osaka, crowds, "
        "vaporwave, retrowave, concrete jungle, moscow, toronto, bus, metro station, hotel, offices, mall, "
        "gangsters, mumbai, madrid, boston, brooklyn, hollywood, dystopia, street market, business quarter, "
        "cities, metropolitan, street, square, plaza, block, crosswalk, pedestrians, cab, tram, parking lot, "
        "garage, skyscraper, condo, office, bank, stock exchange, museum, cathedral, cinema, theatre, bar, "
        "disco, restaurant, shopping, neon, led signs, arcade, hackers, androids, cyber, cyborg, futurism, "
        "sci fi, science fiction, tron, matrix, robocop, batman, spiderman, superhero, graffiti, hip hop, "
        "police, sirens, limousine, wall street, broadway, san francisco, philadelphia, detroit, houston, "
        "atlanta, washington, rome, milan, vienna, amsterdam, brussels, istanbul, beijing, bangkok, delhi, "
        "jakarta, sao paulo, buenos aires, lagos, cairo traffic, melbourne, vancouver, montreal, warsaw, "
        "prague, stockholm, synth pop, electronic music, eighties, industrial, factory, concrete, urban, "
        "civilization, traffic jam, rush hour"
    ),
    "coast": (
        "coast, beach, sea, seaside, ocean, shore, coast road, island, tropical island, palm trees, palms, by "
        "the water, waterfront, sandy beach, california, florida, waves, coastline, marina, greek islands, "
        "cornwall, ocean drive, turquoise water, ships, summer vacation, tahiti, the gulf, seashells, rio, "
        "barcelona, sharks, whales, turtles, pirates, mermaids, yacht, cruise ship, cuba, jamaica, sicily, "
        "bikini, lifeguard, coastal, beaches, seashore, seafront, sea road, shoreline, islands, isle, "
        "archipelago, tropics, tropical, surfboard, bathing, swimming, swimsuit, snorkel, diving, crab, "
        "lobster, gull, pelican, port, pier, jetty, dock, wharf, ferry, cruise liner, navy, anchor, cliff, "
        "dunes by the sea, peninsula, cape, estuary, tide, tides, ocean view, blue water, sand castle, "
        "sunscreen, pina colada, cocktail on the beach, ukulele, hula, polynesia, fiji, samoa, seychelles, "
        "mauritius, philippines, thailand beach, sri lanka, aruba, barbados, puerto rico, dominican republic, "
        "acapulco, cancun, ibiza, mallorca, corsica, sardinia, crete, cyprus, malta, croatia, dalmatia, "
        "algarve, portugal, nice, cannes, monaco, naples, capri, key west, honolulu, san diego, big sur, "
        "monterey, nantucket, cape cod, sydney harbour, gold coast, baltic, north sea, adriatic, aegean, "
        "vacation, vacation at the sea, resort, honeymoon"
    ),
    "clear": (
        "clear sky, clear weather, clear, sunny, sunshine, cloudless sky, blue sky, bright sun, dry weather, "
        "good weather, fair weather, nice weather, perfect weather, bright and dry, lovely weather, crisp "
        "clear air, brilliant sun, heat wave, hot sun, sunglasses, sunbathing, clear skies, blue skies, sun, "
        "sunlight, bright sunshine, dry, mild, warm, hot, glorious weather, fine weather, great weather, "
        "transparent air, pure air, crystal clear, bluest sky, pleasant, beautiful weather, balmy, shining, "
        "glowing, sun drenched, cheerful, high pressure, summery"
    ),
    "rain": (
        "rain, rainy, raining, heavy rain, storm, stormy, drizzle, wet road, wet, downpour, pouring rain, "
        "thunder, thunder and rain, showers, bad weather, rain clouds, flood, raindrops, rainstorm, it rains, "
        "soaking wet, damp, dripping wet, gale, flash floods, overcast, grey rain, april weather, raincoat, "
        "cyclone, dreary weather, tears, rains, rainfall, rained, thunderous, storms, thunderclouds, stormy "
        "weather, tropical storm, electric storm, squall, cloudy, dark clouds, grey skies, grey clouds, gray, "
        "wet roads, wetness, moist, drenched, dripping, raincoats, rubber boots, flooding, inundation, water "
        "drops, rainy season, rainy day, wet season, autumn storm, wind and water, windy, tornado, noah's "
        "ark, singing in the rain, spitting, sodden, muddy, gutters overflow"
    ),
    "fog": (
        "fog, foggy, mist, misty, haze, hazy, thick fog, dense fog, fog bank, morning mist, veil of mist, "
        "poor view, foggy air, white out, ghostly mist, pea soup, blurred, dim, unclear, dust haze, hidden, "
        "air pollution, mysterious, fogs, foggy road, mists, misty hills, hazy light, fog machine, blur, "
        "smoky, invisible, shrouded, veil, cloaked, gloom, grey soup, pale, ghostly, spooky, eerie, sherlock "
        "holmes, sand in the air, polluted air, exhaust fumes, opaque, faint shapes, soft focus, mystic, "
        "horror movie, white air"
    ),
}
# Words that say two attributes at once.
PAIRS: dict[tuple[str, str], str] = {
    ("city", "night"): "neon night, night club, city lights at night, neon signs",
    ("coast", "day"): "a day at the beach, sun bathing on the beach, summer at the sea",
    ("coast", "dusk"): "sunset beach, the sun sinks into the sea",
    ("night", "clear"): "starry sky, a sky full of stars, clear night",
    (
        "day",
        "clear",
    ): "sunny day, bright sunny day, summer sun, sunny afternoon, hot day, scorching sun, sun is shining",
    ("snow", "fog"): "snow storm, whiteout, driving snow, heavy snowfall",
    ("desert", "fog"): "sandstorm, dust storm, sand storm",
    ("dawn", "fog"): "misty morning, morning fog, foggy morning",
    ("city", "rain"): "wet streets, rainy streets, rainy city",
    ("desert", "clear"): "burning desert sun, hot desert, desert heat",
}
# What a word of another attribute hints at: less than a word of its own would say.
HINTS: dict[str, str] = {
    "day": "sun, the sun, sunny, sunshine, bright sun, hot sun, brilliant sun, blue sky, sunglasses, heat wave",
    "night": "neon lights, street lamps, night life",
}
HINT = 0.4
NEGATED = {
    "rain": "no rain, without rain, stop the rain, not raining, no more rain, it stopped raining, no storm",
    "fog": "no fog, without fog, the fog lifts, not foggy, no mist, fog is gone, no more haze, never foggy",
    "night": "not night, no darkness, not dark, no longer night, never dark",
}
BEFORE = [
    "{}",
    "a {}",
    "the {}",
    "drive through {}",
    "driving in {}",
    "i want {}",
    "make it {}",
    "let's go to {}",
    "take me to {}",
    "turn it into {}",
    "change to {}",
    "now {}",
    "please {}",
    "a road through {}",
    "show me {}",
    "{} please",
    "{} now",
    "{}!",
    "switch to {}",
    "i'd like {}",
    "go {}",
    "a picture of {}",
    "a scene of {}",
    "it is {}",
    "it should be {}",
    "a car in {}",
    "a highway in {}",
    "cruise along {}",
    "what about {}",
    "can we have {}?",
    "{} road",
    "a long road, {}",
    "my favourite: {}",
    "world of {}",
    "somewhere with {}",
    "feels like {}",
    "{} vibes",
    "a video game about {}",
    "an empty road and {}",
    "once upon a time, {}",
    "fast driving, {}",
    "racing through {}",
    "calm {}",
    "epic {}",
]
JOINS = [
    " ",
    ", ",
    " and ",
    " with ",
    " in ",
    " at ",
    " during ",
    " under ",
    " by ",
    " on a ",
    " in the ",
    " at the ",
    " near ",
    " - ",
    " while ",
    " , lots of ",
]


class Phrase(NamedTuple):
    text: str
    target_L: NDArray[np.float32]
    said: tuple[bool, bool, bool]


def words(of: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in WORDS[of].split(","))


def make(dice: np.random.Generator) -> Phrase:
    """One phrase with its look; see the module docstring."""
    said: dict[int, str] = {}
    parts: list[str] = []
    if dice.random() < 0.12:
        pair = list(PAIRS)[dice.integers(len(PAIRS))]
        parts.append(_pick(PAIRS[pair], dice))
        said |= {_attribute(value): value for value in pair}
    elif dice.random() < 0.1:
        value = list(NEGATED)[dice.integers(len(NEGATED))]
        parts.append(_pick(NEGATED[value], dice))
        said[_attribute(value)] = "day" if value == "night" else "clear"
    for attribute, chance in dice.permutation([(0, 0.5), (1, 0.65), (2, 0.45)]):
        if int(attribute) in said or dice.random() > chance:
            continue
        values = ATTRIBUTES[int(attribute)]
        value = values[dice.integers(len(values))]
        said[int(attribute)] = value
        parts.append(_pick(WORDS[value], dice))
    if not parts:
        return make(dice)
    return Phrase(_sentence([parts[i] for i in dice.permutation(len(parts))], dice), target(said), _said(said))


def target(said: dict[int, str]) -> NDArray[np.float32]:
    """The 12-d look of what was said (attribute number to value) and of what suits it."""
    time, weather = said.get(0, "day"), said.get(2, "clear")
    suits = "city" if time == "night" else "forest" if weather == "fog" else "coast"
    look_L = np.zeros(LOOK, np.float32)
    for at, names, value in (
        (0, TIMES, time),
        (len(TIMES), BIOMES, said.get(1, suits)),
        (len(TIMES) + len(BIOMES), WEATHERS, weather),
    ):
        look_L[at + names.index(value)] = 1.0
    return look_L


def _attribute(value: str) -> int:
    return next(i for i, values in enumerate(ATTRIBUTES) if value in values)


def _said(said: dict[int, str]) -> tuple[bool, bool, bool]:
    return (0 in said, 1 in said, 2 in said)


def _pick(choices: str, dice: np.random.Generator) -> str:
    split = choices.split(",")
    return split[dice.integers(len(split))].strip()


def _sentence(parts: list[str], dice: np.random.Generator) -> str:
    text = parts[0]
    for part in parts[1:]:
        text += JOINS[dice.integers(len(JOINS))] + part
    return BEFORE[dice.integers(len(BEFORE))].format(text) if dice.random() < 0.7 else text
