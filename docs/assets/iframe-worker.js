// Search for pages that are read from the disk: browsers refuse workers there, so a hidden frame runs what a worker would.
// (The theme would load such a script from another host; "iframe-worker" in this file's name tells it that one is there.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<body></body>";
      frame.addEventListener("load", () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data: data }));
        const script = inside.document.createElement("script");
        script.src = url;
        script.addEventListener("load", () => {
          this.inside = inside;
          this.waiting.splice(0).forEach((data) => this.postMessage(data));
        });
        inside.document.body.append(script);
      });
      document.body.append(frame);
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data: data }));
      else this.waiting.push(data);
    }

    terminate() {}
  };
}
