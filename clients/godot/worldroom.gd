# A world of Worldroom as a texture in Godot 4, in web exports: the page's own SDK does WebRTC, this shows and steers.
# Put it on a TextureRect; `address` is a room's, `#token=...` included where the server asks for one.
extends TextureRect

signal joined(controls: Array)
signal lost(reason: String)

@export var address: String = "http://127.0.0.1:8080/r/godot"
@export var keys: Dictionary = {
	KEY_UP: "ArrowUp", KEY_DOWN: "ArrowDown", KEY_LEFT: "ArrowLeft", KEY_RIGHT: "ArrowRight",
	KEY_W: "KeyW", KEY_A: "KeyA", KEY_S: "KeyS", KEY_D: "KeyD", KEY_SPACE: "Space",
}

const BRIDGE := """
(async (address) => {
  const sdk = await import(new URL('/web/sdk/index.js', address).href);
  const video = Object.assign(document.createElement('video'), { muted: true, autoplay: true, playsInline: true });
  const canvas = document.createElement('canvas');
  const room = sdk.connect(address);
  room.on('track', (track) => { video.srcObject = new MediaStream([track]); video.play(); });
  const world = { room, phase: 'connecting', width: 0, height: 0 };
  room.on('link', (link) => { world.phase = link.phase; });
  world.press = (key) => room.press(key);
  world.release = (key) => room.release(key);
  world.grab = () => {
    if (!video.videoWidth) return null;
    world.width = canvas.width = video.videoWidth;
    world.height = canvas.height = video.videoHeight;
    const paint = canvas.getContext('2d', { willReadFrequently: true });
    paint.drawImage(video, 0, 0);
    return paint.getImageData(0, 0, canvas.width, canvas.height).data.buffer;
  };
  window.worldroom = world;
})(%s)
"""

var _world: JavaScriptObject = null
var _phase: String = ""
var _texture: ImageTexture = null


func _ready() -> void:
	if not OS.has_feature("web"):
		lost.emit("this script plays in web exports; elsewhere use a WHEP plugin for the picture")
		set_process(false)
		return
	JavaScriptBridge.eval(BRIDGE % JSON.stringify(address), true)


func _process(_delta: float) -> void:
	if _world == null:
		_world = JavaScriptBridge.get_interface("worldroom")
		return
	if str(_world.phase) != _phase:
		_phase = str(_world.phase)
		if _phase == "live":
			joined.emit(keys.values())
		elif _phase != "connecting":
			lost.emit(_phase)
	_show()


func _show() -> void:
	var pixels: Variant = _world.grab()
	if pixels == null:
		return
	var bytes: PackedByteArray = JavaScriptBridge.js_buffer_to_packed_byte_array(pixels)
	var image := Image.create_from_data(int(_world.width), int(_world.height), false, Image.FORMAT_RGBA8, bytes)
	if _texture == null:
		_texture = ImageTexture.create_from_image(image)
		texture = _texture
	else:
		_texture.update(image)


func _unhandled_key_input(event: InputEvent) -> void:
	if _world == null or event.is_echo() or not keys.has(event.keycode):
		return
	if event.is_pressed():
		_world.press(keys[event.keycode])
	else:
		_world.release(keys[event.keycode])
