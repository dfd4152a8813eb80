// The enrolment of a passkey: the device makes a key, and the server gets its public part.

const box = document.getElementById('enrol');
const facts = box.dataset;
const { Failed, SignInAgain, fromBase64, isSupported, messageOf, send, toBase64, utf8 } = await import(facts.signature);
const form = box.querySelector('form'), status = box.querySelector('[role=status]');
const again = box.querySelector('[data-again]'), button = form.querySelector('button');

// create asks the device for a passkey.
async function create(options) {
  const { challenge, rp_id: id, user, dn, algorithms, enrolled } = options;
  const name = /^cn=((?:\\.|[^,\\])*)/i.exec(dn)?.[1] ?? dn;
  try {
    return await navigator.credentials.create({
      publicKey: {
        challenge: fromBase64(challenge, 'The challenge'), rp: { id, name: 'ledgerd' },
        user: { id: utf8.encode(user), name: dn, displayName: name },
        pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
        excludeCredentials: enrolled.map((known) => ({ type: 'public-key', id: fromBase64(known, 'A credential ID') })),
        authenticatorSelection: { userVerification: 'required', residentKey: 'preferred' }, attestation: 'none',
      },
    });
  } catch (error) {
    if (error.name === 'InvalidStateError') throw new Failed('This device already has a passkey of yours.');
    if (error.name === 'NotAllowedError') throw new Failed('The device has made no passkey: you have cancelled it, or it took too long.');
    throw error;
  }
}

async function enrol(name) {
  const { rawId, response } = await create(await send(`${facts.at}/challenge`, {}));
  const bytes = (buffer) => toBase64(new Uint8Array(buffer));
  await send(`${facts.at}/add`, {
    passkey: JSON.stringify({
      name, credential_id: bytes(rawId), client_data: bytes(response.clientDataJSON),
      attestation_object: bytes(response.attestationObject),
    }),
  });
}

function report(text, kind) {
  status.className = text ? `notice ${kind}` : '';
  status.textContent = text;
  again.hidden = true;
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  button.disabled = true;
  report('');
  try {
    await enrol(form.elements.name.value.trim());
    location.reload();
  } catch (error) {
    report(messageOf(error), 'bad');
    again.hidden = !(error instanceof SignInAgain);
  }
  button.disabled = false;
});

if (isSupported && globalThis.PublicKeyCredential) form.hidden = false;
else report('This browser offers no passkeys here. It offers them only over https and on localhost.', 'bad');
