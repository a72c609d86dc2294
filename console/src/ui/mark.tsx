export function Mark() {
  return <svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M10 7v19" /><path class="cloth" d="M10 8h14l-4.5 5L24 18H10z" /></svg>
}
