// Makes a PNG of at most 64 colours of one that a browser took: a third of its size, and no difference to be seen where
// there are text and lines. A script for a page of its own: `await reduce(base64)` gives the new one as base64.
const MOST = 64;

function countColours(pixels) {
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return counts;
}

// Squared distance of two colours, each 0xAABBGGRR.
function distance(one, other) {
  let sum = 0;
  for (const shift of [0, 8, 16]) sum += (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2;
  return sum;
}

// The colours that leave the least of all others away: each next one is that of which most is missing. With it, for each
// colour, which of them is next to it.
function choosePalette(counts) {
  const colours = [...counts].map(([colour, count]) => ({ colour, count, away: Infinity, nearest: 0 }));
  const palette = [];
  while (palette.length < Math.min(MOST, colours.length)) {
    const missed = (one) => one.count * Math.min(one.away, 1e6);
    const next = colours.reduce((most, one) => (missed(one) > missed(most) ? one : most)).colour;
    for (const one of colours) {
      const away = distance(one.colour, next);
      if (away < one.away) Object.assign(one, { away, nearest: palette.length });
    }
    palette.push(next);
  }
  return { palette, index: new Map(colours.map(({ colour, nearest }) => [colour, nearest])) };
}

async function deflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function checksum(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}

function chunk(name, data) {
  const whole = new Uint8Array(12 + data.length);
  const view = new DataView(whole.buffer);
  view.setUint32(0, data.length);
  whole.set(new TextEncoder().encode(name), 4);
  whole.set(data, 8);
  view.setUint32(8 + data.length, checksum(whole.subarray(4, 8 + data.length)));
  return whole;
}

function header(width, height) {
  const view = new DataView(new ArrayBuffer(13));
  view.setUint32(0, width);
  view.setUint32(4, height);
  view.setUint8(8, 8); // bits of a pixel
  view.setUint8(9, 3); // each is an index into the palette
  return new Uint8Array(view.buffer);
}

async function readPixels(base64) {
  const image = await createImageBitmap(new Blob([Uint8Array.fromBase64(base64)], { type: "image/png" }));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  return { width: image.width, height: image.height, pixels: new Uint32Array(data.buffer) };
}

globalThis.reduce = async (base64) => {
  const { width, height, pixels } = await readPixels(base64);
  const { palette, index } = choosePalette(countColours(pixels));
  const rows = new Uint8Array((width + 1) * height); // each row begins with 0: it is not filtered
  pixels.forEach((pixel, at) => {
    rows[at + Math.floor(at / width) + 1] = index.get(pixel);
  });
  const colours = Uint8Array.from(palette.flatMap((one) => [one & 255, (one >> 8) & 255, (one >> 16) & 255]));
  const signature = Uint8Array.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const chunks = [
    chunk("IHDR", header(width, height)),
    chunk("PLTE", colours),
    chunk("IDAT", await deflate(rows)),
    chunk("IEND", new Uint8Array()),
  ];
  return (await new Blob([signature, ...chunks]).bytes()).toBase64();
};
