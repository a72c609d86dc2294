// Does what the snippet of PostHog's documentation does: window.posthog collects
// calls until the script of the server has loaded and takes them over.
!function (document, posthog) {
  if (posthog.__SV) return
  window.posthog = posthog
  posthog._i = []
  posthog.init = function (token, config, name) {
    var script = document.createElement('script')
    script.type = 'text/javascript'
    script.crossOrigin = 'anonymous'
    script.async = true
    script.src = config.api_host.replace('.i.posthog.com', '-assets.i.posthog.com') + '/static/array.js'
    var first = document.getElementsByTagName('script')[0]
    first.parentNode.insertBefore(script, first)
    var target = name === undefined ? posthog : (posthog[name] = [])
    target.people = target.people || []
    'capture identify register onFeatureFlags reloadFeatureFlags group people.set'.split(' ').forEach(function (method) {
      var at = target, parts = method.split('.')
      if (parts.length === 2) { at = target[parts[0]]; method = parts[1] }
      at[method] = function () { at.push([method].concat(Array.prototype.slice.call(arguments, 0))) }
    })
    posthog._i.push([token, config, name === undefined ? 'posthog' : name])
  }
  posthog.__SV = 1
}(document, window.posthog || [])
