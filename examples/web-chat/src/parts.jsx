// The parts of messages.

const COLOURS = ["red", "green", "blue"];

export function Part({ part, answer, decide }) {
  switch (part.type) {
    case "text":
      return <p data-part="text">{part.text}</p>;
    case "reasoning":
      return (
        <details data-part="reasoning" open>
          <summary>Reasoning</summary>
          {part.text}
        </details>
      );
    case "data-note":
      return <p data-part="note">Note: {part.data.text}</p>;
    case "data-output":
      return <p data-part="output">Handed in: {part.data.text}</p>;
    case "data-subagent":
      return (
        <section data-part="sub-agent" data-state={part.data.status}>
          {part.data.name} ({part.data.status}): {part.data.text}
        </section>
      );
    case "tool-ask_colour":
      return <Question part={part} answer={answer} />;
    case "tool-pay":
      return <Payment part={part} decide={decide} />;
    default:
      return part.type.startsWith("tool-") && <Call part={part} />;
  }
}

/** A call with its arguments and its result. */
function Call({ part, children }) {
  return (
    <section data-part={part.type} data-state={part.state}>
      <pre>
        {part.type.slice("tool-".length)} {JSON.stringify(part.input)}
      </pre>
      {part.output !== undefined && <pre>{JSON.stringify(part.output)}</pre>}
      {part.errorText && <p role="alert">{part.errorText}</p>}
      {children}
    </section>
  );
}

/** A call that the page answers. */
function Question({ part, answer }) {
  const choose = (colour) =>
    answer({ tool: "ask_colour", toolCallId: part.toolCallId, output: { colour } });
  return (
    <Call part={part}>
      {part.state === "input-available" &&
        COLOURS.map((colour) => (
          <button key={colour} onClick={() => choose(colour)}>
            {colour}
          </button>
        ))}
    </Call>
  );
}

/** A call that waits for the approval of the user. */
function Payment({ part, decide }) {
  return (
    <Call part={part}>
      {part.state === "approval-requested" && (
        <>
          <button onClick={() => decide({ id: part.approval.id, approved: true })}>Yes</button>
          <button onClick={() => decide({ id: part.approval.id, approved: false })}>No</button>
        </>
      )}
      {part.state === "output-denied" && <p>denied</p>}
    </Call>
  );
}
